import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { addNote, type Note, notesFileIn, readNotes } from '../config/notes.js';
import { pagePattern } from '../page.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import type { Using, WorkspaceView } from './parts.js';

const FORGET_NOTES = readSql(import.meta.url, 'statements/forget-notes.sql');
const RECORD_NOTES = readSql(import.meta.url, 'statements/record-notes.sql');
const NOTES_OF_PROJECT = readSql(import.meta.url, 'statements/notes-of-project.sql');

const noteRow = z.object({ day: dayColumn, text: z.string(), path: z.string(), is_break: z.boolean() });
/** A note as stored; its `path` is `*` if it concerns the whole site. */
export type StoredNote = z.infer<typeof noteRow>;

/** The notes of a project, oldest first. */
export const notesOf = (reader: Reader, project: string): Promise<StoredNote[]> =>
  reader.query(NOTES_OF_PROJECT, noteRow, { project });

type NotesOf = Pick<WorkspaceView, 'workspaceDir' | 'historyFile' | 'settings'>;

/** Next to the configuration; for the sandbox, which has none, next to its history. */
const fileOf = ({ workspaceDir, historyFile }: NotesOf): string =>
  notesFileIn(workspaceDir ?? dirname(historyFile));

/** The projects that notes may name. */
const namesIn = ({ settings }: NotesOf): string[] => settings.projects.map(({ id }) => id);

/** The notes of `notes.yaml`. Throws a `ConfigurationError` if it has problems. */
export const readOwnNotes = (workspace: NotesOf): Promise<Note[]> =>
  readNotes(fileOf(workspace), namesIn(workspace));

/** Stores the notes of `notes.yaml`. If it has problems, returns the error and keeps the stored ones. */
export const loadNotes = (parts: Using<'workspace' | 'store'>): Promise<unknown> =>
  storeNotes(parts).catch((error: unknown) => error);

async function storeNotes({ workspace, store }: Using<'workspace' | 'store'>): Promise<void> {
  const notes = await readOwnNotes(workspace);
  for (const { id: project } of workspace.settings.projects) {
    const rows = notes.filter((note) => note.project === undefined || note.project === project).map(rowOf);
    rows.sort(inOrder);
    if (isDeepStrictEqual(rows, (await notesOf(store, project)).sort(inOrder))) continue;
    await store.transaction(async (transaction) => {
      await transaction.execute(FORGET_NOTES, { project });
      await transaction.execute(RECORD_NOTES, { project, notes: JSON.stringify(rows) });
    });
  }
}

const EVERY_PATH = /^\/\*+$/;

const rowOf = ({ date, text, path, break: isBreak }: Note): StoredNote => ({
  day: date,
  text,
  path: path === undefined || EVERY_PATH.test(path) ? '*' : pagePattern(path),
  is_break: isBreak === true,
});

const inOrder = (one: StoredNote, other: StoredNote): number =>
  JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;

/** Adds a note to `notes.yaml`, from which the next step that uses notes loads it. Returns the file. */
export const writeNote = (workspace: NotesOf, note: Note): Promise<string> =>
  addNote(fileOf(workspace), note, namesIn(workspace));
