import { z } from 'zod';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import type { Day } from '../day.js';
import type { DayOf } from './kept-pages.js';
import type { State } from './state.js';

const RECORD_DAY_FAILURE = readSql(import.meta.url, 'statements/record-day-failure.sql');
const MARK_DIFFERING = readSql(import.meta.url, 'statements/mark-differing.sql');
const DAY_FAILURES = 'SELECT * FROM day_failures WHERE project = $project ORDER BY day';
const FORGET_DAY_FAILURE = 'DELETE FROM day_failures WHERE project = $project AND day = $day';
const FORGET_FAILURES_BEFORE = 'DELETE FROM day_failures WHERE project = $project AND day < $first';

const failureRow = z.object({
  day: dayColumn,
  attempted_at: timestampColumn,
  failure: z.string(),
  failures: z.int(),
});
/** The last attempt to load a day, which failed, and how many in a row did. */
export type DayFailure = z.infer<typeof failureRow>;

/** The days of a project whose last attempt failed, oldest first. */
export const readDayFailures = (state: State, project: string): DayFailure[] =>
  state.all(DAY_FAILURES, failureRow, { project });

/** Records that a day could not be loaded, and why. What is stored of it stays. */
export const recordDayFailure = (
  state: State,
  at: DayOf & { readonly now: Date },
  failure: string,
): Promise<number> => state.transaction(() => state.run(RECORD_DAY_FAILURE, { ...at, failure }));

/** Marks a stored day of which the platform now has other numbers, so that it is due. */
export const markDiffering = (state: State, { project, day }: DayOf, readAt: Date): Promise<number> =>
  state.transaction(() => state.run(MARK_DIFFERING, { project, day, readAt }));

/** Forgets the failure of a day that was loaded, inside a transaction. */
export const forgetDayFailure = (state: State, { project, day }: DayOf): number =>
  state.run(FORGET_DAY_FAILURE, { project, day });

/** Forgets the failures of days that the platform does not keep. */
export const forgetFailuresBefore = (state: State, project: string, first: Day): Promise<number> =>
  state.transaction(() => state.run(FORGET_FAILURES_BEFORE, { project, first }));
