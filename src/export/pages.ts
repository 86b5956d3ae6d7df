import { z } from 'zod';
import type { Client, ReadOptions } from '../api/client.js';
import { PagingError, RefusedError } from '../api/errors.js';
import { LIMITS, type PageViews, type ViewsResponse, viewsResponseSchema } from '../api/schema.js';
import type { Day } from '../day.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { sumCounts } from './totals.js';

const UNFINISHED_DAYS = readSql(import.meta.url, 'statements/unfinished-days.sql');
const UNFINISHED_PAGE = readSql(import.meta.url, 'statements/unfinished-page.sql');
const KEEP_PAGE = readSql(import.meta.url, 'statements/keep-page.sql');
const DELETE_PAGES = 'DELETE FROM unfinished_pages WHERE project = $project AND day = $day::DATE';

/** A response of the views export. */
interface PageOfDay extends ViewsResponse {
  /** Rows of the page before, which are at the same places. */
  readonly again: readonly PageViews[];
}

/** More rows than this in one walk mean that it does not end. */
const MAX_ROWS = 1_000_000;

/** Limits that servers accept, if they refuse the documented one without naming theirs. */
const USUAL_LIMITS = [100, 50, 10];

/** Pages of at least so many rows that account for less than this share of the views are not believed to be the last. */
const FEWEST_CUT = 10;
const WHOLE_SHARE = 0.95;

/** What a platform may sort its rows by. */
const COUNTS = ['total', 'human', 'ai'] as const;

/** The largest number of rows that the platform returns in one response, and their order, as learned from its answers. */
export class PageSize {
  readonly #shortPages = new Map<number, number>();

  constructor(
    public rows: number = LIMITS.viewsPage.max,
    /** Whether equal rows come in another order in each response. */
    public isShuffled = false,
  ) {}

  /** A response that was not the last one had this many rows. The same number twice shows a silent limit. */
  saw(rows: number): void {
    if (rows >= this.rows) return;
    const times = (this.#shortPages.get(rows) ?? 0) + 1;
    this.#shortPages.set(rows, times);
    if (times > 1 && rows === Math.max(...this.#shortPages.keys())) this.rows = rows;
  }
}

/** The limit to try after the platform refused a larger one; undefined if it refused something else. */
export function smallerLimit(error: unknown, limit: number): number | undefined {
  if (!(error instanceof RefusedError) || ![400, 422].includes(error.status)) return undefined;
  if (!/limit/i.test(error.words)) return undefined;
  const named = (error.words.match(/\d+/g) ?? []).map(Number).filter((one) => one > 0 && one < limit);
  return named.length > 0 ? Math.max(...named) : USUAL_LIMITS.find((one) => one < limit);
}

export interface PagesOptions extends ReadOptions {
  readonly pageSize: PageSize;
  /**
   * The rows of a page, as a share of those that the platform returns. If it is less than all of them, each page begins
   * with the last rows of the one before that have equal counts, so that none is missed.
   */
  readonly share?: number;
  /** The first rows, as one page, if an earlier export kept them. */
  readonly kept?: ViewsResponse | undefined;
  /** How many pages may be requested at the same time; one by default. */
  readonly atOnce?: (() => number) | undefined;
}

/** Whether rows may follow a page. Some servers say of a full page that it is the last one. */
export const mayHaveMore = ({ hasMore, views }: ViewsResponse, { rows }: PageSize): boolean =>
  hasMore || views.length === rows;

/**
 * The pages of the views of a range. Each begins after the rows that have arrived, however many were
 * requested. Up to `atOnce` whole pages are requested at the same time, and only those that must exist
 * if rows are sorted by their views. It ends with an empty page, or a short one that is said to be the
 * last. Throws a `PagingError` if there is no end.
 */
export async function* viewsPages(
  client: Pick<Client, 'views'>,
  range: { readonly dateFrom: Day; readonly dateTo: Day },
  { pageSize, share = 1, kept, atOnce = () => 1, ...options }: PagesOptions,
): AsyncGenerator<PageOfDay, void, void> {
  const size = () => Math.max(1, Math.floor(pageSize.rows * share));
  const request = async (offset: number, limit = size()): Promise<ViewsResponse> => {
    try {
      return await client.views({ ...range, limit, offset }, options);
    } catch (error) {
      const smaller = smallerLimit(error, limit);
      if (smaller === undefined) throw error;
      const page = await request(offset, smaller);
      // Words about another limit, such as that of a plan, must not make every page small.
      pageSize.rows = Math.min(pageSize.rows, smaller);
      return page;
    }
  };
  const ahead = new Map<number, Promise<ViewsResponse>>();
  let [read, before] = [0, 0];
  let again: readonly PageViews[] = [];
  try {
    for (let [offset, count] = [0, 1]; offset < MAX_ROWS; count++) {
      const page = offset === 0 && kept !== undefined ? kept : await (ahead.get(offset) ?? request(offset));
      ahead.delete(offset);
      yield { ...page, again };
      const rows = page.views.length;
      // Rows that are here again do not follow the page before.
      if (rows > again.length && before > 0 && share === 1) pageSize.saw(before);
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
        if (ahead.has(at)) continue;
        const asked = request(at);
        // If several fail, the first error is thrown.
        asked.catch(() => undefined);
        ahead.set(at, asked);
      }
    }
  } finally {
    await Promise.allSettled(ahead.values());
  }
  throw new PagingError(`the export did not end after ${MAX_ROWS} rows`);
}

/** How many pages must follow if no row has more views than the largest one of this page, as in sorted rows. */
function pagesLeft({ totals, views }: ViewsResponse, read: number): number {
  const largest = views.reduce((most, { total }) => Math.max(most, total), 1);
  return Math.ceil((totals.total - read) / largest / views.length);
}

/** What rows are sorted by, if they are. */
export const sortedBy = (views: readonly PageViews[]): (typeof COUNTS)[number] | undefined =>
  COUNTS.find((name) =>
    views.every((row, index) => index === 0 || row[name] <= (views[index - 1]?.[name] ?? 0)),
  );

/** The last rows of a sorted page that have equal counts; none if all rows have, because it would be the same page again. */
function tiesAtEnd(views: readonly PageViews[]): readonly PageViews[] {
  const column = sortedBy(views);
  const from = column === undefined ? 0 : views.findIndex((row) => row[column] === views.at(-1)?.[column]);
  return from === 0 ? [] : views.slice(from);
}

const dayRow = z.object({ day: dayColumn, rows: z.int() });
const pageRow = z.object({ response: z.string() });

/** The days of a project that the hourly limit stopped, and how many of their rows are kept. */
export async function readUnfinishedDays(reader: Reader, project: string): Promise<Map<Day, number>> {
  const rows = await reader.query(UNFINISHED_DAYS, dayRow, { project });
  return new Map(rows.map((row) => [row.day, row.rows]));
}

/** A day of a project. */
export interface DayOf {
  readonly project: string;
  readonly day: Day;
}

/**
 * The rows of a day that the hourly limit stopped, as one page, so that a day of more requests than an
 * hour allows is loaded over several hours. The totals show if it changed meanwhile.
 */
export async function readKeptPage(reader: Reader, of: DayOf): Promise<ViewsResponse | undefined> {
  const [row] = await reader.query(UNFINISHED_PAGE, pageRow, { ...of });
  return row && viewsResponseSchema.parse(JSON.parse(row.response));
}

/** Keeps the rows of a stopped walk instead of those of earlier ones; none of a day that was read. */
export const keepPage = (warehouse: Warehouse, of: DayOf, page: ViewsResponse | undefined): Promise<void> =>
  warehouse.groupCommit(async (transaction) => {
    await transaction.execute(DELETE_PAGES, { ...of });
    if (page !== undefined) await transaction.execute(KEEP_PAGE, { ...of, response: JSON.stringify(page) });
  });
