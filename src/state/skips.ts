import { z } from 'zod';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import { type Day, dayOf } from '../day.js';
import type { State } from './state.js';

const SKIPS_OF_PROJECT = readSql(import.meta.url, 'statements/skips-of-project.sql');
const RECORD_SKIP = readSql(import.meta.url, 'statements/record-skip.sql');

/** A page of a project, named by its path without variants. */
export interface ProjectPage {
  readonly project: string;
  readonly path: string;
}

const skipRow = z.object({
  path: z.string(),
  skipped_at: timestampColumn,
  skipped_until: dayColumn.nullable(),
});
/** A page to skip until a day, or until the skip is undone. */
export type Skip = z.infer<typeof skipRow>;

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
