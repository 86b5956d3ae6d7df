import { z } from 'zod';
import { dayColumn, readSql } from '../columns.js';
import type { Day } from '../day.js';
import type { State } from './state.js';

const UNFINISHED_DAYS = readSql(import.meta.url, 'statements/unfinished-days.sql');
const KEEP_PAGE = readSql(import.meta.url, 'statements/keep-page.sql');
const KEPT_PAGES = 'SELECT page_offset, response FROM kept_pages WHERE project = $project AND day = $day';
const FORGET_PAGES = 'DELETE FROM kept_pages WHERE project = $project AND day = $day';

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
