import { z } from 'zod';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import type { Day, DayRange } from '../day.js';
import type { State } from './state.js';

const UNFINISHED_DAYS = readSql(import.meta.url, 'statements/unfinished-days.sql');
const KEEP_PAGE =
  'INSERT INTO kept_pages (project, day, page_offset, response) VALUES ($project, $day, $offset, $response)';
const KEPT_PAGES = 'SELECT page_offset, response FROM kept_pages WHERE project = $project AND day = $day';
const FORGET_PAGES = 'DELETE FROM kept_pages WHERE project = $project AND day = $day';
const RECORD_DAY_FAILURE = readSql(import.meta.url, 'statements/record-day-failure.sql');
const MARK_DIFFERING = readSql(import.meta.url, 'statements/mark-differing.sql');
const DAY_FAILURES = 'SELECT * FROM day_failures WHERE project = $project ORDER BY day';
const FORGET_DAY_FAILURE = 'DELETE FROM day_failures WHERE project = $project AND day = $day';
const FORGET_FAILURES_BEFORE = 'DELETE FROM day_failures WHERE project = $project AND day < $first';
const LAST_VERIFICATION = readSql(import.meta.url, 'statements/last-verification.sql');
const RECORD_VERIFICATION = readSql(import.meta.url, 'statements/record-verification.sql');
const STORE_KNOWN_DAYS = 'INSERT INTO known_days (project, stamp, days) VALUES ($project, $stamp, $days)';
const KNOWN_DAYS = 'SELECT project, days FROM known_days WHERE stamp = $stamp';

/** A day of a project. */
export interface DayOf {
  readonly project: string;
  readonly day: Day;
}

const dayRow = z.object({ day: dayColumn, rows: z.int() });
const pageRow = z.object({ page_offset: z.int(), response: z.string() });

/** The days of a project of which some pages are kept, and how many rows these have. */
export const readUnfinishedDays = (state: State, project: string): Map<Day, number> =>
  new Map(state.all(UNFINISHED_DAYS, dayRow, { project }).map(({ day, rows }) => [day, rows]));

/** The responses that are kept of a day, by their offsets; that at 0 has all rows that were read in a row. */
export const readKeptPages = (state: State, { project, day }: DayOf): Map<number, unknown> =>
  new Map(
    state
      .all(KEPT_PAGES, pageRow, { project, day })
      .map((row) => [row.page_offset, JSON.parse(row.response) as unknown]),
  );

/** Keeps the responses of a walk that goes on later, instead of those of earlier ones. */
export const keepPages = (
  state: State,
  { project, day }: DayOf,
  pages: ReadonlyMap<number, unknown>,
): Promise<void> =>
  state.transaction(() => {
    forgetPages(state, { project, day });
    for (const [offset, page] of pages)
      state.run(KEEP_PAGE, { project, day, offset, response: JSON.stringify(page) });
  });

/** Forgets the pages of a day, inside a transaction. */
export const forgetPages = (state: State, { project, day }: DayOf): number =>
  state.run(FORGET_PAGES, { project, day });

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
): Promise<number> => state.change(RECORD_DAY_FAILURE, { ...at, failure });

/** Marks a stored day of which the platform now has other numbers, so that it is due. */
export const markDiffering = (state: State, { project, day }: DayOf, readAt: Date): Promise<number> =>
  state.change(MARK_DIFFERING, { project, day, readAt });

/** Forgets the failure of a day that was loaded, inside a transaction. */
export const forgetDayFailure = (state: State, { project, day }: DayOf): number =>
  state.run(FORGET_DAY_FAILURE, { project, day });

/** Forgets the failures of days that the platform does not keep. */
export const forgetFailuresBefore = (state: State, project: string, first: Day): Promise<number> =>
  state.change(FORGET_FAILURES_BEFORE, { project, first });

const lastRow = z.object({ verified_at: timestampColumn.nullable() });

/** When the stored history of a project was last compared with the platform, or last before a time. */
export const readLastVerification = (
  state: State,
  project: string,
  before: Date | null = null,
): Date | undefined => state.get(LAST_VERIFICATION, lastRow, { project, before })?.verified_at ?? undefined;

/** Records that a range of stored days was compared with the totals of the platform, and how many differed. */
export const recordVerification = (
  state: State,
  project: string,
  { first, last }: DayRange,
  differing: number,
  now: Date,
): Promise<number> =>
  state.change(RECORD_VERIFICATION, { project, first, last, days_differing: differing, now });

/** What is known of the stored days of projects, as JSON, while the history has this stamp. */
export const readKnownDays = (state: State, stamp: string): Map<string, string> =>
  new Map(
    state
      .all(KNOWN_DAYS, z.object({ project: z.string(), days: z.string() }), { stamp })
      .map(({ project, days }) => [project, days]),
  );

/** Stores it, in place of what was known before, inside a transaction. */
export function storeKnownDays(state: State, stamp: string, known: ReadonlyMap<string, string>): void {
  state.run('DELETE FROM known_days');
  for (const [project, days] of known) state.run(STORE_KNOWN_DAYS, { project, stamp, days });
}
