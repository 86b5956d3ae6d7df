import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { addNote, type Note, notesFileIn, readNotes } from '../config/notes.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import type { StepContext } from './step.js';

const FORGET_NOTES = readSql(import.meta.url, 'statements/forget-notes.sql');
const RECORD_NOTES = readSql(import.meta.url, 'statements/record-notes.sql');
const NOTES_OF_PROJECT = readSql(import.meta.url, 'statements/notes-of-project.sql');

const noteRow = z.object({ day: dayColumn, text: z.string(), path: z.string(), is_break: z.boolean() });
/** A note as stored; its `path` is `*` if it concerns the whole site. */
export type StoredNote = z.infer<typeof noteRow>;

/** The notes of a project, oldest first. */
export const notesOf = (reader: Reader, project: string): Promise<StoredNote[]> =>
  reader.query(NOTES_OF_PROJECT, noteRow, { project });

type Place = Pick<StepContext, 'workspaceDir' | 'historyFile' | 'settings'>;

/** Next to the configuration; for the sandbox, which has none, next to its history. */
const fileOf = ({ workspaceDir, historyFile }: Place): string =>
  notesFileIn(workspaceDir ?? dirname(historyFile));

/** The projects that notes may name. */
const namesIn = ({ settings }: Place): string[] => settings.projects.map(({ id }) => id);

/** The notes of `notes.yaml`. Throws a `ConfigurationError` if it has problems. */
export const readOwnNotes = (place: Place): Promise<Note[]> => readNotes(fileOf(place), namesIn(place));

/** Stores the notes of `notes.yaml`. If it has problems, returns the error and keeps the stored ones. */
export const loadNotes = (context: StepContext): Promise<unknown> =>
  storeNotes(context).catch((error: unknown) => error);

async function storeNotes(context: StepContext): Promise<void> {
  const notes = await readOwnNotes(context);
  const { warehouse, settings } = context;
  for (const { id: project } of settings.projects) {
    const rows = notes.filter((note) => note.project === undefined || note.project === project).map(rowOf);
    rows.sort(inOrder);
    if (isDeepStrictEqual(rows, (await notesOf(warehouse, project)).sort(inOrder))) continue;
    await warehouse.transaction(async (transaction) => {
      await transaction.execute(FORGET_NOTES, { project });
      await transaction.execute(RECORD_NOTES, { project, notes: JSON.stringify(rows) });
    });
  }
}

const EVERY_PATH = /^\/\*+$/;

const rowOf = ({ date, text, path, break: isBreak }: Note): StoredNote => ({
  day: date,
  text,
  path: path === undefined || EVERY_PATH.test(path) ? '*' : path,
  is_break: isBreak === true,
});

const inOrder = (one: StoredNote, other: StoredNote): number =>
  JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;

/** Adds a note to `notes.yaml`, from which the next step that uses notes loads it. Returns the file. */
export const writeNote = (context: StepContext, note: Note): Promise<string> =>
  addNote(fileOf(context), note, namesIn(context));
