import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { addNote, type Note, notesFileIn, readNotes } from '../config/notes.js';
import { pagePattern } from '../page.js';
import { notesOf, replaceNotes, type StoredNote } from '../state/decisions.js';
import type { State } from '../state/state.js';
import type { WorkspaceView } from './step.js';

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
export async function loadNotes(workspace: NotesOf, state: State): Promise<unknown> {
  try {
    const notes = await readOwnNotes(workspace);
    for (const { id: project } of workspace.settings.projects) {
      const own = notes.filter((note) => note.project === undefined || note.project === project);
      const rows = own.map(rowOf).sort(inOrder);
      if (isDeepStrictEqual(rows, notesOf(state, project).sort(inOrder))) continue;
      await state.transaction(() => replaceNotes(state, project, rows));
    }
    return undefined;
  } catch (error) {
    return error;
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
