import { z } from 'zod';
import { dayColumn, flagColumn, readSql, timestampColumn } from '../columns.js';
import { type Day, dayOf } from '../day.js';
import type { State } from './state.js';

const CHOICES_OF_PROJECT = readSql(import.meta.url, 'statements/choices-of-project.sql');
const RECORD_CHOICE = readSql(import.meta.url, 'statements/record-choice.sql');
const LEAVE_OUT = readSql(import.meta.url, 'statements/leave-out.sql');
const SKIPS_OF_PROJECT = readSql(import.meta.url, 'statements/skips-of-project.sql');
const RECORD_SKIP = readSql(import.meta.url, 'statements/record-skip.sql');

const choiceRow = z.object({
  path: z.string(),
  chosen_at: timestampColumn,
  is_flagged: flagColumn,
  code: z.string(),
  facts: z.string(),
  weekly_human: z.number(),
  weekly_ai: z.number(),
});
/** A page that was considered, with the reason as a code and facts as JSON, since when. */
export type Choice = z.infer<typeof choiceRow>;

/** What the latest selection of a project considered. */
export const readChoices = (state: State, project: string): Choice[] =>
  state.all(CHOICES_OF_PROJECT, choiceRow, { project });

/** Stores what a selection considered, instead of the one before. */
export function replaceChoices(state: State, project: string, choices: readonly Choice[]): void {
  state.run('DELETE FROM choices WHERE project = $project', { project });
  for (const choice of choices) state.run(RECORD_CHOICE, { ...choice, project });
}

/** Leaves a page out that was considered, for another reason. */
export function leaveOut(state: State, page: ProjectPage, why: Pick<Choice, 'code' | 'facts'>): void {
  state.run(LEAVE_OUT, { ...page, ...why });
}

/** Forgets that a page was left out for this reason. */
export function forgetLeftOut(state: State, page: ProjectPage, code: string): void {
  state.run('DELETE FROM choices WHERE project = $project AND path = $path AND code = $code', {
    ...page,
    code,
  });
}

/** A page of a project, named by its path without variants. */
interface ProjectPage {
  readonly project: string;
  readonly path: string;
}

const skipRow = z.object({
  path: z.string(),
  skipped_at: timestampColumn,
  skipped_until: dayColumn.nullable(),
});
/** A page to skip until a day, or until the skip is undone. */
type Skip = z.infer<typeof skipRow>;

/** The pages of a project that are skipped now. */
export const readSkips = (state: State, project: string, now: Date): Skip[] =>
  state.all(SKIPS_OF_PROJECT, skipRow, { project, today: dayOf(now) });

/** Skips a page, instead of an earlier skip. */
export function recordSkip(state: State, page: ProjectPage, now: Date, until: Day | null): void {
  state.run(RECORD_SKIP, { ...page, now, until });
}

export function forgetSkip(state: State, page: ProjectPage): void {
  state.run('DELETE FROM skips WHERE project = $project AND path = $path', { ...page });
}

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
