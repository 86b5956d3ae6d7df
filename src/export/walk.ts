import type { Client, ReadOptions } from '../api/client.js';
import { PagingError, PausedError } from '../api/errors.js';
import type { PageViews, ViewCounts, ViewsResponse } from '../api/schema.js';
import { addDays, type Day } from '../day.js';
import { percent } from '../format/numbers.js';
import type { Texts } from '../warehouse/texts.js';
import { DayRows, type Rows } from './day-rows.js';
import { type PageOfDay, PageSize, viewsPages } from './pages.js';
import { countChangedPages, equalCounts, subtractCounts } from './totals.js';

/** The maximum number of walks of a day that does not add up. */
const MAX_WALKS = 3;

/** The maximum number of searches for the rows that a walk missed, each of which has to find some. */
const MAX_SEARCHES = 12;

/**
 * Each further walk requests pages smaller by this share. A server that sorts equal rows differently
 * for each request loses rows at page boundaries, which are then elsewhere.
 */
const SMALLER_PAGES = 0.2;

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
  /** What an earlier walk stored, when that added up and need not be read again if its first page is the same. */
  readonly stored?: StoredViews | undefined;
  /** What earlier walks found of a day that did not add up. */
  readonly found?: StoredViews | undefined;
  /** The paths of days read before. */
  readonly paths?: Texts;
  readonly pageSize?: PageSize;
  /** Pages of a first walk that an earlier export kept. */
  readonly kept?: ReadonlyMap<number, ViewsResponse> | undefined;
  /** How many pages may be requested at the same time; one by default. */
  readonly atOnce?: () => number;
  /** Called with the pages of a first walk that has to wait for the hourly limit. */
  readonly onPaused?: (pages: readonly PageOfDay[]) => void;
}

/** One walk through the pages of a day, from the first to the last. */
interface Walk {
  readonly rows: DayRows;
  /** As on the last page. */
  readonly totals: ViewCounts;
  /** Whether all pages had the same totals. */
  readonly isSteady: boolean;
  /** The index of the first row of each page but the first. */
  readonly boundaries: readonly number[];
}

/**
 * Reads a day until its rows add up to its totals. Rows that moved between two requests are missing
 * from one walk and found by another, so the rows of all walks count together, also those of earlier
 * exports while the totals are the same. A day that never adds up, or whose next walk would have to
 * wait for the hourly limit, is returned with the `doubt`. A settled day that reads the same twice
 * without adding up is accepted when the difference is small: reading it again would not help.
 *
 * When the totals and the first page are those stored, the day is `unchanged`, and no further page
 * is requested.
 *
 * Throws what the client throws, and a `PagingError` when the pages do not follow the rules of the
 * API.
 */
export const walkDay = (
  client: Pick<Client, 'views'>,
  day: Day,
  options: WalkOptions,
): Promise<WalkedDay | 'unchanged'> => new DayWalks(client, day, options).read();

class DayWalks {
  /** The rows of all walks, with their latest counts. */
  readonly #all: DayRows;
  /** Whether `#all` has rows of an earlier walk, so that a walk may end before its last page. */
  #isShared = false;
  readonly #pageSize: PageSize;

  constructor(
    private readonly client: Pick<Client, 'views'>,
    private readonly day: Day,
    private readonly options: WalkOptions,
  ) {
    this.#all = new DayRows(options.paths);
    this.#pageSize = options.pageSize ?? new PageSize();
  }

  async read(): Promise<WalkedDay | 'unchanged'> {
    let last: Walk | undefined;
    try {
      for (let number = 0; number < MAX_WALKS; number++) {
        const walk = await this.#walk(number);
        if (walk === 'unchanged') return walk;
        const { totals, rows } = walk;
        const complete = this.#rowsThatAddUp(walk, last);
        if (complete !== undefined) return walked(totals, complete, totals);
        if (this.options.isSettled() && last !== undefined && isSameWalk(last, walk))
          return walked(totals, rows.rows, rows.sum, doubtOf(walk));
        if (!this.#isShared) this.#all.add([...rows.rows]);
        this.#isShared = true;
        last = walk;
        if (await this.#findsMissed(walk)) return walked(totals, this.#all.rows, totals);
      }
    } catch (error) {
      if (last === undefined || !(error instanceof PausedError)) throw error;
    }
    if (last === undefined) throw new PagingError('the export has no pages');
    return walked(last.totals, this.#all.rows, this.#all.sum, MOVED);
  }

  #pages(options: Partial<Parameters<typeof viewsPages>[2]>): ReturnType<typeof viewsPages> {
    const { lease, priority = 'urgent', signal } = this.options;
    const range = { dateFrom: this.day, dateTo: addDays(this.day, 1) };
    return viewsPages(this.client, range, { lease, priority, signal, pageSize: this.#pageSize, ...options });
  }

  async #walk(number: number): Promise<Walk | 'unchanged'> {
    const { paths, stored, found, kept, atOnce, onPaused } = this.options;
    const rows = new DayRows(paths);
    /** The pages, with the indices of their rows instead of the rows. */
    const read: (Omit<PageOfDay, 'views'> & { readonly from: number; readonly to: number })[] = [];
    const add = ({ offset, totals, views, hasMore }: PageOfDay): number => {
      const from = rows.arrived;
      const added = rows.add(views);
      read.push({ offset, totals, hasMore, from, to: rows.arrived });
      return added;
    };
    const ahead: PageOfDay[] = [];
    // A later walk ends as soon as all rows are found.
    const ofFirst = number === 0 ? { kept, atOnce } : { limit: this.#smallerPages(number) };
    let totals: ViewCounts | undefined;
    let isSteady = true;
    try {
      for await (const page of this.#pages({ ...ofFirst, onAhead: (page) => ahead.push(page) })) {
        if (totals === undefined && number === 0) {
          if (isStartOf(stored, page)) return 'unchanged';
          this.#isShared = found !== undefined && equalCounts(found.totals, page.totals);
          if (this.#isShared) this.#all.add(found?.rows ?? []);
        }
        isSteady &&= totals === undefined || equalCounts(totals, page.totals);
        totals = page.totals;
        const added = add(page);
        if (equalCounts(rows.sum, totals)) break;
        if (added === 0 && page.hasMore && page.views.length > 0)
          throw new PagingError(
            'a page of the export only repeats earlier ones, but the server says that more follow',
          );
        if (!this.#isShared) continue;
        this.#all.add(page.views);
        if (equalCounts(this.#all.sum, totals)) break;
      }
    } catch (error) {
      if (number === 0 && error instanceof PausedError) {
        for (const page of ahead) add(page);
        onPaused?.(read.map(({ from, to, ...page }) => ({ ...page, views: [...rows.slice(from, to)] })));
      }
      throw error;
    }
    if (totals === undefined) throw new PagingError('the export has no pages');
    return { rows, totals, isSteady, boundaries: read.slice(1).map(({ from }) => from) };
  }

  #smallerPages(number: number): number {
    return Math.max(1, Math.floor(this.#pageSize.rows * (1 - number * SMALLER_PAGES)));
  }

  /**
   * The rows that account for all views, if there are any. Within minutes, the counts of a path can only rise, so if rows
   * of different requests add up to the totals of the last one, all are up to date and none is missing.
   */
  #rowsThatAddUp({ rows, totals, isSteady }: Walk, last: Walk | undefined): Rows | undefined {
    if (equalCounts(rows.sum, totals)) return rows.rows;
    if (this.#isShared && equalCounts(this.#all.sum, totals)) return this.#all.rows;
    // Views of a path with two rows are added up. But a row repeated on a later page may have pushed out another row with
    // the same counts: only if a walk with other page boundaries repeats the same rows does the path have two rows.
    const isCertain =
      !rows.hasRepeats || (last !== undefined && hasSameRows(last.rows.replaced, rows.replaced));
    return isSteady && isCertain ? rows.merged(totals) : undefined;
  }

  /**
   * Whether it finds the rows that a walk missed because the server orders equal rows differently for each
   * request: only rows that equal those on both sides of a page boundary can be missing.
   */
  async #findsMissed({ rows, totals, isSteady, boundaries }: Walk): Promise<boolean> {
    if (!isSteady || rows.replaced.length === 0) return false;
    const stretches = equalRowsAcross(rows.slice(0, rows.arrived), boundaries);
    for (let search = 0; search < MAX_SEARCHES && stretches.length > 0; search++) {
      let added = 0;
      let end = 0;
      for (const { from, to } of stretches) {
        // The pages of the stretch before may have gone far enough.
        if (to <= end) continue;
        for await (const page of this.#pages({ from })) {
          if (!equalCounts(page.totals, totals)) return false;
          added += this.#all.add(page.views);
          if (equalCounts(this.#all.sum, totals)) return true;
          end = page.offset + page.views.length;
          if (end >= to) break;
        }
      }
      if (added === 0) return false;
    }
    return false;
  }
}

/** Stretches of equal rows that reach across page boundaries, if the rows are sorted by one of their counts. */
function equalRowsAcross(rows: Rows, boundaries: readonly number[]): { from: number; to: number }[] {
  const counts = [rows.total, rows.human, rows.ai].find((column) =>
    column.every((count, index) => index === 0 || count <= (column[index - 1] ?? 0)),
  );
  const stretches = new Map<number, { from: number; to: number }>();
  for (const boundary of counts === undefined ? [] : boundaries) {
    if (counts?.[boundary] !== counts?.[boundary - 1]) continue;
    let [from, to] = [boundary, boundary + 1];
    while (counts?.[from - 1] === counts?.[boundary]) from--;
    while (counts?.[to] === counts?.[boundary]) to++;
    stretches.set(from, { from, to });
  }
  return [...stretches.values()];
}

/** Whether a first page is that of a stored day with more pages. */
const isStartOf = (stored: StoredViews | undefined, page: ViewsResponse): boolean =>
  stored !== undefined &&
  equalCounts(stored.totals, page.totals) &&
  page.hasMore &&
  page.views.length > 0 &&
  page.views.length < stored.rows.length &&
  isPartOf(stored, page);

/** Whether all rows of a page are stored as they are. The API promises no order, so any rows will do. */
export function isPartOf(stored: StoredViews, { views }: ViewsResponse): boolean {
  const byPath = new Map(stored.rows.map((row) => [row.path, row]));
  return views.every((row) => {
    const known = byPath.get(row.path);
    return known !== undefined && equalCounts(known, row);
  });
}

const isSameWalk = (last: Walk, walk: Walk): boolean =>
  [last, walk].every(({ isSteady, rows }) => isSteady && rows.replaced.length === 0) &&
  equalCounts(last.totals, walk.totals) &&
  hasSameRows([...last.rows.rows], walk.rows.rows);

const hasSameRows = (left: readonly PageViews[], right: Iterable<PageViews>): boolean =>
  countChangedPages(left, right) === 0;

function doubtOf({ rows, totals }: Walk): string | undefined {
  const { human, ai, total } = subtractCounts(totals, rows.sum);
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
