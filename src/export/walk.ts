import type { Client, ReadOptions } from '../api/client.js';
import { PagingError, PausedError } from '../api/errors.js';
import { LIMITS } from '../api/schema.js';
import type { PageViews, ViewCounts, ViewsResponse } from '../api/schema.js';
import { addDays, type Day } from '../day.js';
import { percent } from '../format/numbers.js';
import type { Texts } from '../warehouse/texts.js';
import { DayRows, type Rows } from './day-rows.js';
import { type PageOfDay, viewsPages } from './pages.js';
import { countChangedPages, equalCounts, subtractCounts } from './totals.js';

/** The maximum number of walks of a day that does not add up. */
const MAX_WALKS = 3;

/**
 * Each further walk requests pages this much smaller. A server that sorts equal rows differently
 * for each request loses rows at page boundaries, which are then elsewhere.
 */
const SMALLER_PAGES = 50;

/** A settled day is not final if a larger share of its views belongs to no page. */
const MAX_UNATTRIBUTED_SHARE = 0.05;

const MOVED = 'rows moved while the day was read; it will be read again later';

/** A stored day. */
export interface StoredViews {
  readonly totals: ViewCounts;
  /** One row for each path. */
  readonly rows: readonly PageViews[];
}

/** The result of a day's walks. */
export interface WalkedDay {
  readonly totals: ViewCounts;
  /** One row for each path. */
  readonly rows: Rows;
  /** The site totals minus the sum of the rows. */
  readonly unattributed: ViewCounts;
  /** Why the rows are not reliable; undefined if they are. */
  readonly doubt: string | undefined;
}

export interface WalkOptions extends ReadOptions {
  /** Whether late events have arrived, so that the day no longer changes. */
  readonly isSettled: () => boolean;
  /** What an earlier walk stored, when that added up. */
  readonly stored?: StoredViews | undefined;
  /** The paths of days read before. */
  readonly paths?: Texts;
  /** How many pages may be requested at the same time; one by default. */
  readonly atOnce?: () => number;
  /** Called with the pages of a first walk that has to wait for the hourly limit. */
  readonly onPaused?: (pages: readonly PageOfDay[]) => void;
}

/** One walk through the pages of a day, from the first to the last. */
interface Walk {
  readonly found: DayRows;
  /** As on the last page. */
  readonly totals: ViewCounts;
  /** Whether all pages had the same totals. */
  readonly isSteady: boolean;
}

/**
 * Reads a day until its rows add up to its totals. Rows that moved between two requests are missing
 * from one walk and found by another, so the rows of all walks count together. A day that never
 * adds up, or whose next walk would have to wait for the hourly limit, is returned with the
 * `doubt`. A settled day that reads the same twice without adding up is accepted when the
 * difference is small: reading it again would not help.
 *
 * When the totals and the first page are those stored, the day is `unchanged`, and no further page
 * is requested.
 *
 * Throws what the client throws, and a `PagingError` when the pages do not follow the rules of the
 * API.
 */
export async function walkDay(
  client: Pick<Client, 'views'>,
  day: Day,
  options: WalkOptions,
): Promise<WalkedDay | 'unchanged'> {
  const all = new DayRows(options.paths);
  let last: Walk | undefined;
  for (let number = 0; number < MAX_WALKS; number++) {
    if (number === 1) all.add([...(last?.found.rows ?? [])]);
    const walk = await walkOnce(client, day, options, number, all).catch((error: unknown) => {
      if (last !== undefined && error instanceof PausedError) return undefined;
      throw error;
    });
    if (walk === 'unchanged') return walk;
    if (walk === undefined) break;
    const rows = rowsThatAddUp(walk, last, all);
    if (rows !== undefined) return walked(walk.totals, rows, walk.totals);
    if (options.isSettled() && last !== undefined && isSameWalk(last, walk))
      return walked(walk.totals, walk.found.rows, walk.found.sum, doubtOf(walk));
    last = walk;
  }
  if (last === undefined) throw new PagingError('the export has no pages');
  return walked(last.totals, all.rows, all.sum, MOVED);
}

async function walkOnce(
  client: Pick<Client, 'views'>,
  day: Day,
  options: WalkOptions,
  number: number,
  all: DayRows,
): Promise<Walk | 'unchanged'> {
  const found = new DayRows(options.paths);
  /** The pages, with the indices of their rows instead of the rows. */
  const read: (Omit<PageOfDay, 'views'> & { readonly from: number; readonly to: number })[] = [];
  const add = ({ offset, totals, views, hasMore }: PageOfDay): number => {
    const from = found.arrived;
    const added = found.add(views);
    read.push({ offset, totals, hasMore, from, to: found.arrived });
    return added;
  };
  const ahead: PageOfDay[] = [];
  const pages = viewsPages(
    client,
    { dateFrom: day, dateTo: addDays(day, 1) },
    {
      ...options,
      limit: LIMITS.viewsPage.max - number * SMALLER_PAGES,
      // A later walk ends as soon as all rows are found.
      atOnce: number === 0 ? options.atOnce : undefined,
      onAhead: (page) => ahead.push(page),
    },
  );
  let totals: ViewCounts | undefined;
  let isSteady = true;
  try {
    for await (const page of pages) {
      if (totals === undefined && number === 0 && isStartOf(options.stored, page)) return 'unchanged';
      isSteady &&= totals === undefined || equalCounts(totals, page.totals);
      totals = page.totals;
      if (add(page) === 0 && page.hasMore)
        throw new PagingError(
          'a page of the export only repeats earlier ones, but the server says that more follow',
        );
      if (number === 0) continue;
      all.add(page.views);
      if (equalCounts(all.sum, totals)) break;
    }
  } catch (error) {
    if (number === 0 && error instanceof PausedError) {
      for (const page of ahead) add(page);
      options.onPaused?.(
        read.map(({ from, to, ...page }) => ({ ...page, views: [...found.slice(from, to)] })),
      );
    }
    throw error;
  }
  if (totals === undefined) throw new PagingError('the export has no pages');
  return { found, totals, isSteady };
}

/** Whether a first page is that of a stored day with more pages. The API promises no order, so any rows will do. */
function isStartOf(stored: StoredViews | undefined, page: ViewsResponse): boolean {
  if (stored === undefined || !equalCounts(stored.totals, page.totals)) return false;
  if (!page.hasMore || page.views.length === 0 || page.views.length >= stored.rows.length) return false;
  const byPath = new Map(stored.rows.map((row) => [row.path, row]));
  return page.views.every((row) => {
    const known = byPath.get(row.path);
    return known !== undefined && equalCounts(known, row);
  });
}

/**
 * The rows that account for all views, if there are any. Within minutes, the counts of a path can only rise, so if rows
 * of different requests add up to the totals of the last one, all are up to date and none is missing.
 */
function rowsThatAddUp(walk: Walk, last: Walk | undefined, all: DayRows): Rows | undefined {
  const { found, totals, isSteady } = walk;
  if (equalCounts(found.sum, totals)) return found.rows;
  if (last !== undefined && equalCounts(all.sum, totals)) return all.rows;
  // Views of a path with two rows are added up. But a row repeated on a later page may have pushed out another row with
  // the same counts: only if a walk with other page boundaries repeats the same rows does the path have two rows.
  const isCertain =
    !found.hasRepeats || (last !== undefined && hasSameRows(last.found.replaced, found.replaced));
  return isSteady && isCertain ? found.merged(totals) : undefined;
}

const isSameWalk = (last: Walk, walk: Walk): boolean =>
  [last, walk].every(({ isSteady, found }) => isSteady && found.replaced.length === 0) &&
  equalCounts(last.totals, walk.totals) &&
  hasSameRows([...last.found.rows], walk.found.rows);

const hasSameRows = (left: readonly PageViews[], right: Iterable<PageViews>): boolean =>
  countChangedPages(left, right) === 0;

function doubtOf({ found, totals }: Walk): string | undefined {
  const { human, ai, total } = subtractCounts(totals, found.sum);
  const share = Math.max(Math.abs(total), Math.abs(human) + Math.abs(ai)) / Math.max(1, totals.total);
  return share <= MAX_UNATTRIBUTED_SHARE
    ? undefined
    : `its pages and its totals differ by ${percent(share)}; it will be read again later`;
}

const walked = (totals: ViewCounts, rows: Rows, sum: ViewCounts, doubt?: string): WalkedDay => ({
  totals,
  rows,
  unattributed: subtractCounts(totals, sum),
  doubt,
});
