import { DATE, INTEGER, VARCHAR } from '@duckdb/node-api';
import { z } from 'zod';
import type { Client, ReadOptions } from '../api/client.js';
import { PagingError } from '../api/errors.js';
import type { Lease } from '../api/retry.js';
import { LIMITS, type ViewsResponse, viewsResponseSchema } from '../api/schema.js';
import type { Day } from '../day.js';
import { counted } from '../format/numbers.js';
import { dateOf, dayColumn, type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { sumCounts } from './totals.js';

const UNFINISHED_DAYS = readSql(import.meta.url, 'statements/unfinished-days.sql');
const UNFINISHED_PAGES = readSql(import.meta.url, 'statements/unfinished-pages.sql');
const DELETE_PAGES = 'DELETE FROM unfinished_pages WHERE project = $project AND day = $day::DATE';

/** A page of views, and its offset. */
export interface PageOfDay extends ViewsResponse {
  readonly offset: number;
}

/** More than this many pages in one walk, a million rows, means that it does not end. */
const MAX_PAGES = 4_000;

interface PagesOptions extends ReadOptions {
  /** Rows of a page; by default the most. */
  readonly limit?: number;
  /** How many pages may be requested at the same time; one by default. */
  readonly atOnce?: (() => number) | undefined;
  /** Called with pages that were requested ahead, and that follow one that failed or the last one. */
  readonly onAhead?: (page: PageOfDay) => void;
}

/**
 * The pages of the views of a range. Up to `atOnce` of them are requested at the same time, and only
 * those that must exist if rows are sorted by their views. Throws a `PagingError` if a page is
 * shorter than requested although more are promised, because the next offset would skip rows, or if
 * there is no end.
 */
export async function* viewsPages(
  client: Pick<Client, 'views'>,
  range: { readonly dateFrom: Day; readonly dateTo: Day },
  options: PagesOptions = {},
): AsyncGenerator<PageOfDay, void, void> {
  const { limit = LIMITS.viewsPage.max, atOnce = () => 1, onAhead } = options;
  const underWay: Promise<PageOfDay>[] = [];
  let known = 1;
  let read = 0;
  try {
    for (let page = 0; page < MAX_PAGES; page++) {
      while (page + underWay.length < known && (underWay.length === 0 || underWay.length < atOnce())) {
        const offset = (page + underWay.length) * limit;
        const request = client
          .views({ ...range, limit, offset }, options)
          .then(({ totals, views, hasMore }) => ({ offset, totals, views, hasMore }));
        // If several fail, the first error is thrown.
        request.catch(() => undefined);
        underWay.push(request);
      }
      const response = await underWay.shift();
      if (response === undefined) return;
      const { length } = response.views;
      if (response.hasMore && length < limit)
        throw new PagingError(
          `page ${page + 1} of the export has ${counted(length, 'row')} of the ${limit} requested, but the server says that more follow`,
        );
      yield response;
      if (!response.hasMore) return;
      known = Math.max(known, page + 2);
      read += sumCounts(response.views).total;
      if (atOnce() > 1)
        known = Math.max(known, page + 1 + Math.min(page + 1, pagesLeft(response, read, limit)));
    }
  } finally {
    for (const ahead of await Promise.allSettled(underWay))
      if (ahead.status === 'fulfilled') onAhead?.(ahead.value);
  }
  throw new PagingError(`the export did not end after ${MAX_PAGES} pages of ${limit}`);
}

/**
 * How many pages must follow if no row has more views than the largest one of this page, as in
 * sorted rows.
 */
function pagesLeft({ totals, views }: ViewsResponse, read: number, limit: number): number {
  let largest = 1;
  for (const { total } of views) largest = Math.max(largest, total);
  return Math.ceil((totals.total - read) / largest / limit);
}

const dayRow = z.object({ day: dayColumn, pages: z.int() });
const pageRow = z.object({ page_offset: z.int(), response: z.string() });

/** The days of a project that the hourly limit stopped, and how many of their pages are kept. */
export async function readUnfinishedDays(reader: Reader, project: string): Promise<Map<Day, number>> {
  // A history that an older version published has no such table.
  const isThere = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'unfinished_pages'";
  if ((await reader.query(isThere, z.object({}))).length === 0) return new Map();
  const rows = await reader.query(UNFINISHED_DAYS, dayRow, { project });
  return new Map(rows.map((row) => [row.day, row.pages]));
}

interface DayOf {
  readonly warehouse: Warehouse;
  readonly project: string;
  readonly day: Day;
}

/**
 * Stands in for the client while a day is walked, and requests only pages that are not kept already.
 * If the hourly limit stops the walk, its pages are kept, so a day of more requests than an hour
 * allows is loaded over several hours. The totals on each page show if it changed meanwhile.
 */
export class ResumableViews {
  readonly #of: DayOf;
  readonly #views: Client['views'];
  /** Pages that an earlier export kept. Each is used once: a second walk requests all pages again. */
  readonly #kept = new Map<number, ViewsResponse>();
  #unfinished: readonly PageOfDay[] = [];

  private constructor(of: DayOf, client: Pick<Client, 'views'>, lease: Lease) {
    this.#of = of;
    this.#views = (query, options) => client.views(query, { ...options, lease });
  }

  static async open(
    of: DayOf,
    client: Pick<Client, 'views'>,
    lease: Lease,
    isUnfinished: boolean,
  ): Promise<ResumableViews> {
    const resumable = new ResumableViews(of, client, lease);
    if (!isUnfinished) return resumable;
    for (const row of await of.warehouse.query(UNFINISHED_PAGES, pageRow, parametersOf(of)))
      resumable.#kept.set(row.page_offset, viewsResponseSchema.parse(JSON.parse(row.response)));
    return resumable;
  }

  readonly views: Client['views'] = async (query, options) => {
    // A second walk has smaller pages, which cannot continue a first walk.
    if (query.limit < LIMITS.viewsPage.max) this.#kept.clear();
    const kept = this.#kept.get(query.offset);
    this.#kept.delete(query.offset);
    return kept ?? (await this.#views(query, options));
  };

  /** The pages of a walk that the hourly limit stopped. */
  readonly onPaused = (pages: readonly PageOfDay[]): void => {
    this.#unfinished = pages;
  };

  /** Keeps the pages of a stopped walk, and drops those of earlier ones. */
  async end(isUnfinished: boolean): Promise<void> {
    const pages = this.#unfinished;
    if (pages.length === 0 && !isUnfinished) return;
    await this.#of.warehouse.groupCommit(async (transaction) => {
      await transaction.execute(DELETE_PAGES, parametersOf(this.#of));
      const { project, day } = this.#of;
      for (const { offset, ...page } of pages)
        await transaction.appendRow('unfinished_pages', [
          [VARCHAR, project],
          [DATE, dateOf(day)],
          [INTEGER, offset],
          [VARCHAR, JSON.stringify(page)],
        ]);
    });
  }
}

const parametersOf = ({ project, day }: DayOf) => ({ project, day });
