import type { ReadOptions, ViewsClient } from '../api/client.js';
import { PagingError, type RefusedError } from '../api/errors.js';
import {
  type PageViews,
  rowsOnPage,
  type UnreadableRow,
  type ViewCounts,
  type ViewsResponse,
  viewsResponseSchema,
} from '../api/schema.js';
import type { Day } from '../day.js';
import { type DayOf, readKeptPages } from '../state/days.js';
import type { State } from '../state/state.js';
import { thousands } from '../format/numbers.js';
import { type DayPageSize, isInvalid, limitedTo, smallerLimit, withPage } from './paging.js';
import { sumCounts } from './totals.js';

/** A response of the views export. */
interface PageOfDay extends ViewsResponse {
  /** Rows that cannot be read, by their places among all rows. */
  readonly unreadable: readonly UnreadableRow[];
  /** Rows of the page before, which are at the same places. */
  readonly again: readonly PageViews[];
  /** What the responses so far have shown. */
  readonly pageSize: DayPageSize;
}

/** More rows than this in one walk mean that it does not end. */
const MAX_ROWS = 1_000_000;

/** Pages of at least so many rows that account for less than this share of the views are not believed to be the last. */
const FEWEST_CUT = 10;
const WHOLE_SHARE = 0.95;

/** What a platform may sort its rows by. */
const SORT_COLUMNS = ['total', 'human', 'ai'] as const;

/** The platform lists no rows beyond an offset, which says nothing about other pages or days. */
export class OffsetError extends Error {
  constructor(
    readonly offset: number,
    readonly refusal: RefusedError,
  ) {
    super(`rows beyond the first ${thousands(offset)} are refused`, { cause: refusal });
  }
}

/** Pages of a day by their offsets: all rows that were read in a row as one page, and pages after a gap. */
export type KeptPages = ReadonlyMap<number, ViewsResponse>;

export interface PagesOptions extends ReadOptions {
  readonly pageSize: DayPageSize;
  /**
   * The rows of a page, as a share of those that the platform returns. If it is less than all of them, each page begins
   * with the last rows of the one before that have equal counts, so that none is missed.
   */
  readonly share?: number;
  /** What an earlier export kept. */
  readonly kept?: KeptPages | undefined;
  /** Called when reading ends early, with each page that was answered after the one that was not. */
  readonly onAhead?: (offset: number, page: ViewsResponse) => void;
  /** How many pages may be requested at the same time; one by default. */
  readonly atOnce?: (() => number) | undefined;
}

/** Whether rows may follow a page. Some servers say of a full page that it is the last one. */
export const mayHaveMore = (page: ViewsResponse, { rows }: { readonly rows: number }): boolean =>
  page.hasMore || rowsOnPage(page) === rows;

/**
 * The pages of the views of a range. Each begins after the rows that have arrived, however many were
 * requested. Up to `atOnce` whole pages are requested at the same time, and only those that must exist
 * if rows are sorted by their views. It ends with an empty page, or a short one that is said to be the
 * last. Throws a `PagingError` if there is no end, and an `OffsetError` if the platform refuses an offset.
 */
export async function* viewsPages(
  client: ViewsClient,
  range: { readonly dateFrom: Day; readonly dateTo: Day },
  { pageSize: known, share = 1, kept, onAhead, atOnce = () => 1, ...options }: PagesOptions,
): AsyncGenerator<PageOfDay, void, void> {
  let pageSize = known;
  const size = () => Math.max(1, Math.floor(pageSize.rows * share));
  let accepted = 0;
  const request = async (offset: number, limit = size()): Promise<ViewsResponse> => {
    try {
      const page = await client.views({ ...range, limit, offset }, options);
      accepted = Math.max(accepted, limit);
      return page;
    } catch (error) {
      // If the limit was accepted before, the offset is refused.
      const smaller = limit > accepted ? smallerLimit(error, limit) : undefined;
      if (smaller === undefined)
        throw offset > 0 && isInvalid(error) ? new OffsetError(offset, error) : error;
      const page = await request(offset, smaller);
      // Words about another limit, such as that of a plan, must not make every page small.
      pageSize = limitedTo(pageSize, smaller, offset);
      return page;
    }
  };
  const ahead = new Map<number, Promise<ViewsResponse>>();
  let [read, before] = [0, 0];
  let again: readonly PageViews[] = [];
  try {
    for (let [offset, count] = [0, 1]; offset < MAX_ROWS; count++) {
      const page = kept?.get(offset) ?? (await (ahead.get(offset) ?? request(offset)));
      ahead.delete(offset);
      const rows = rowsOnPage(page);
      // Rows that are here again do not follow the page before.
      if (rows > again.length && before > 0 && share === 1) pageSize = withPage(pageSize, before);
      yield { ...page, unreadable: placed(page, offset), again, pageSize };
      before = rows;
      read += sumCounts(page.views).total;
      // Some servers say of a page that they cut short that it is the last one.
      const isCut = rows >= FEWEST_CUT && read < WHOLE_SHARE * page.totals.total;
      if (rows === 0 || (!page.hasMore && rows < size() && !isCut)) return;
      const overlaps = share < 1 || pageSize.isShuffled;
      again = overlaps ? tiesAtEnd(page.views) : [];
      offset += rows - again.length;
      const sure = page.hasMore && !overlaps ? Math.min(count, pagesLeft(page, read)) : 0;
      for (let at = offset; at < offset + sure * rows && ahead.size < atOnce(); at += rows) {
        if (ahead.has(at) || kept?.has(at) === true) continue;
        const asked = request(at);
        // If several fail, the first error is thrown.
        asked.catch(() => undefined);
        ahead.set(at, asked);
      }
    }
  } finally {
    for (const [offset, asked] of ahead)
      await asked.then(
        (page) => onAhead?.(offset, page),
        () => undefined,
      );
  }
  throw new PagingError(`the export did not end after ${MAX_ROWS} rows`);
}

/** The unreadable rows of a page, by their places among all rows. */
const placed = ({ unreadable = [] }: ViewsResponse, offset: number): readonly UnreadableRow[] =>
  unreadable.map(({ index, why }) => ({ index: offset + index, why }));

/** How many pages must follow if no row has more views than the largest one of this page, as in sorted rows. */
function pagesLeft({ totals, views }: ViewsResponse, read: number): number {
  const largest = views.reduce((most, { total }) => Math.max(most, total), 1);
  return Math.ceil((totals.total - read) / largest / views.length);
}

/** What rows are sorted by, if they are. */
export const sortedBy = (views: readonly ViewCounts[]): (typeof SORT_COLUMNS)[number] | undefined =>
  SORT_COLUMNS.find((name) =>
    views.every((row, index) => index === 0 || row[name] <= (views[index - 1]?.[name] ?? 0)),
  );

/** The places of the first equal rows of a walk, if it is sorted, of which some are not among those found. */
export function gapIn(places: readonly ViewCounts[], found: readonly ViewCounts[]) {
  const column = sortedBy(places);
  if (column === undefined) return undefined;
  const paths = tally(found.map((row) => row[column]));
  let from = 0;
  for (const [count, rows] of tally(places.map((row) => row[column]))) {
    const known = paths.get(count) ?? 0;
    // A single row that is repeated has moved.
    if (known > 1 && known < rows) return { from, rows };
    from += rows;
  }
  return undefined;
}

/** How often each number occurs, in the order of their first occurrences. */
function tally(numbers: readonly number[]): Map<number, number> {
  const times = new Map<number, number>();
  for (const number of numbers) times.set(number, (times.get(number) ?? 0) + 1);
  return times;
}

/** The last rows of a sorted page that have equal counts; none if all rows have, because it would be the same page again. */
function tiesAtEnd(views: readonly PageViews[]): readonly PageViews[] {
  const column = sortedBy(views);
  const from = column === undefined ? 0 : views.findIndex((row) => row[column] === views.at(-1)?.[column]);
  return from === 0 ? [] : views.slice(from);
}

/**
 * What is kept of a day that a pause stopped, so that a day of more requests than the platform answers in an hour is
 * loaded over several hours. The totals show if it changed meanwhile.
 */
export const keptPagesOf = (state: State, of: DayOf): KeptPages =>
  new Map(
    [...readKeptPages(state, of)].map(([offset, response]) => [offset, viewsResponseSchema.parse(response)]),
  );
