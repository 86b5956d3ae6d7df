import { z } from 'zod';
import { dayColumn, flagColumn } from '../columns.js';
import type { State } from './state.js';

const NOTES_OF_PROJECT =
  'SELECT day, text, path, is_break FROM notes WHERE project = $project ORDER BY day, text, path, is_break';
const RECORD_NOTE =
  'INSERT INTO notes (project, day, text, path, is_break) VALUES ($project, $day, $text, $path, $is_break)';

const noteRow = z.object({
  day: dayColumn,
  text: z.string(),
  path: z.string(),
  is_break: flagColumn,
});
/** A note as stored; its `path` is `*` if it concerns the whole site. */
export type StoredNote = z.infer<typeof noteRow>;

/** The notes of a project, oldest first. */
export const notesOf = (state: State, project: string): StoredNote[] =>
  state.all(NOTES_OF_PROJECT, noteRow, { project });

/** Stores the notes of a project, instead of those before. */
export function replaceNotes(state: State, project: string, notes: readonly StoredNote[]): void {
  state.run('DELETE FROM notes WHERE project = $project', { project });
  for (const note of notes) state.run(RECORD_NOTE, { ...note, project });
}
