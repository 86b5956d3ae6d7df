import type { ViewsClient } from '../api/client.js';
import { PagingError, PausedError, TryLaterError } from '../api/errors.js';
import type { UnreadableRow, ViewsResponse } from '../api/schema.js';
import { addDays, type Day } from '../day.js';
import { thousands } from '../format/numbers.js';
import { type CountedPath, type DayCounts, pageViewsOf, type ProjectPaths } from '../history/days.js';
import { DayRows } from './day-rows.js';
import { type DayPageSize, type Disagreement, type PageSize, pageSizeOfDay } from './paging.js';
import {
  gapIn,
  type KeptPages,
  mayHaveMore,
  OffsetError,
  type PagesOptions,
  sortedBy,
  viewsPages,
} from './pages-of-day.js';
import {
  countChangedPages,
  doubtOf,
  equalCounts,
  MOVED,
  NO_VIEWS,
  type StoredViews,
  type WalkedDay,
  unreadableWords,
} from './totals.js';

/** How often the places of equal rows are asked for again, without finding another one, before they are left for another night. */
const MAX_IN_VAIN = 3;

/** The maximum number of walks of a day that does not add up, and of those that each find further rows. */
const MAX_WALKS = 3;
const MAX_FINDING_WALKS = 15;

/** Shares of the largest page that the second and further walks request, so that other rows are at the page ends. */
const PAGE_SHARES = [0.9, 0.7, 0.5];

export interface WalkOptions extends Pick<PagesOptions, 'signal' | 'kept' | 'atOnce'> {
  /** The paths of the project, whose ids the rows get. */
  readonly paths: ProjectPaths;
  /** What other days have shown. */
  readonly pageSize: PageSize;
  /** Whether a first page, with its totals, is stored. If so, and if the stored day added up, it need not be read again. */
  readonly isAsStored?: ((first: ViewsResponse) => Promise<boolean>) | undefined;
  /** What earlier walks found of a day that did not add up. */
  readonly found?: StoredViews | undefined;
}

/**
 * Reads a day until its rows add up to its totals. Rows that moved between two requests are missing
 * from one walk and found by another, so the rows of all walks count together, also those of earlier
 * exports while the totals are the same. A day that never adds up, or whose next walk would have to
 * wait, is returned with the `doubt`. A day that reads the same twice without
 * adding up is accepted when the difference is small: reading it again would not help.
 *
 * When the totals and the first page are those stored, the day is `unchanged`, and no further page
 * is requested.
 *
 * Throws what the client throws, and a `PagingError` when the pages do not follow the rules of the
 * API.
 */
export class DayWalks {
  /** What was read by a first walk that goes on later, after a pause or an interruption. */
  unfinished: KeptPages = new Map();
  /** What the walks have shown of the platform's pages. */
  pageSize: DayPageSize;
  /** The rows of all walks, with their latest counts, once there was one: a further walk may end before its last page. */
  readonly #all: DayRows;
  /** What the walks have shown of the end of the rows, if it cannot be right. */
  disagreement: Disagreement | undefined;
  /** Rows of the latest walk that could not be read. */
  #unreadable: readonly UnreadableRow[] = [];
  /** Why no walk gets further. */
  #refusal: OffsetError | undefined;
  readonly #range: { readonly dateFrom: Day; readonly dateTo: Day };

  constructor(
    private readonly client: ViewsClient,
    day: Day,
    private readonly options: WalkOptions,
  ) {
    this.#range = { dateFrom: day, dateTo: addDays(day, 1) };
    this.pageSize = pageSizeOfDay(options.pageSize);
    this.#all = new DayRows(options.paths);
  }

  async read(): Promise<WalkedDay | 'unchanged'> {
    let last: DayRows | undefined;
    let isFinding = false;
    try {
      for (let number = 0; number < (isFinding ? MAX_FINDING_WALKS : MAX_WALKS); number++) {
        const before = this.#all.size;
        const walk = await this.#walk(number);
        if (walk === 'unchanged') return walk;
        if (this.#refusal !== undefined) return this.#asFarAsListed(walk, this.#refusal);
        const earlier = last;
        last = walk;
        let complete = this.#countsThatAddUp(walk, earlier);
        if (complete === undefined) {
          if (earlier !== undefined && isSameWalk(earlier, walk)) return this.#walked(walk, doubtOf(walk));
          if (this.#all.size === 0) this.#all.addCounts(walk.totals, walk.counts);
          await this.#askAgain(walk);
          if (this.#all.addsUp) complete = this.#all.counts;
        }
        if (complete !== undefined) {
          const { isSteady, hasRepeats } = earlier ?? walk;
          // Two walks had equal rows in another order.
          if (isSteady && hasRepeats && !walk.addsUp) this.pageSize = { ...this.pageSize, isShuffled: true };
          const { totals } = walk;
          return this.#walked({ totals, counts: complete, unattributed: NO_VIEWS });
        }
        const isShuffled = walk.replaced.length > 0 && sortedBy(walk.places) !== undefined;
        isFinding = walk.isSteady && !isShuffled && this.#all.size > before;
      }
    } catch (error) {
      if (last === undefined || !(error instanceof PausedError)) throw error;
    }
    return this.#walked(this.#all, MOVED);
  }

  /** The day as it was read. Rows that could not be read are a `doubt` before any other. */
  #walked({ totals, counts, unattributed }: Omit<WalkedDay, 'doubt'>, doubt?: string): WalkedDay {
    return { totals, counts, unattributed, doubt: unreadableWords(this.#unreadable) ?? doubt };
  }

  async #walk(number: number): Promise<DayRows | 'unchanged'> {
    const { signal, isAsStored, found, kept, atOnce } = this.options;
    const isFirst = number === 0;
    const share = isFirst ? 1 : (PAGE_SHARES[(number - 1) % PAGE_SHARES.length] ?? 1);
    const { pageSize } = this;
    const ahead = new Map(isFirst ? kept : []);
    const onAhead = (offset: number, page: ViewsResponse) => void ahead.set(offset, page);
    const options = { signal, pageSize, share, onAhead, ...(isFirst ? { kept, atOnce } : {}) };
    const walk = new DayRows(this.options.paths);
    this.#unreadable = [];
    // The first path of the page before.
    let before: string | undefined;
    try {
      for await (const page of viewsPages(this.client, this.#range, options)) {
        this.pageSize = page.pageSize;
        if (isFirst && walk.size === 0) {
          if (await isAsStored?.({ ...page, hasMore: mayHaveMore(page, page.pageSize) })) return 'unchanged';
          if (found !== undefined && equalCounts(found.totals, page.totals))
            this.#all.addCounts(found.totals, found.counts);
        }
        this.#unreadable = [...this.#unreadable, ...page.unreadable];
        const { size } = walk;
        walk.add(page.totals, page.views, page.again);
        const isMoreSaid = page.hasMore || walk.size === size;
        if (walk.addsUp && size > 0 && isMoreSaid) this.disagreement = 'always more';
        // If the first page adds up, its totals may be its own.
        if (walk.addsUp && (size > 0 || !page.hasMore)) break;
        const begin = page.views[0]?.path;
        if (walk.size === size && page.hasMore && begin !== undefined && begin === before)
          throw new PagingError(
            'a page of the export only repeats earlier ones, but the server says that more follow',
          );
        before = begin;
        // A later walk ends as soon as all rows are found.
        if (this.#all.size === 0) continue;
        this.#all.add(page.totals, page.views);
        if (this.#all.addsUp) break;
      }
    } catch (error) {
      if (error instanceof OffsetError && walk.size > 0) {
        this.#refusal = error;
        return walk;
      }
      const goesOn =
        error instanceof PausedError || error instanceof TryLaterError || signal?.aborted === true;
      const totals = walk.hasPageTotals ? walk.sum : walk.totals;
      if (isFirst && walk.size > 0 && goesOn)
        this.unfinished = new Map([
          ...[...ahead].filter(([offset]) => offset >= walk.size),
          [0, { totals, views: pageViewsOf(walk.counts), hasMore: true }],
        ]);
      throw error;
    }
    if (walk.hasPageTotals) {
      this.disagreement = 'page totals';
      walk.addUp();
    }
    return walk;
  }

  /** What was read of a day whose last rows the platform refuses to list. */
  #asFarAsListed(walk: DayRows, { offset, refusal: { status, words } }: OffsetError): WalkedDay {
    if (this.#all.size === 0) this.#all.addCounts(walk.totals, walk.counts);
    const why = `the platform refused to list rows beyond the first ${thousands(offset)} (${status}${words})`;
    return this.#walked(this.#all, this.#all.addsUp ? undefined : `${why}; it will be read again later`);
  }

  /**
   * Asks again for the places of equal rows of which some were not seen: platforms that order them differently each time
   * show others then.
   */
  async #askAgain({ isSteady, places }: DayRows): Promise<void> {
    const { signal } = this.options;
    for (let [tries, inVain] = [0, 0]; isSteady && this.#all.isSteady; tries++) {
      const gap = gapIn(places, this.#all.rows);
      if (gap === undefined || inVain >= MAX_IN_VAIN * gap.rows) break;
      const limit = this.pageSize.rows;
      const offset = gap.from + ((tries * limit) % Math.max(1, gap.rows - limit + 1));
      const before = this.#all.size;
      const { totals, views } = await this.client.views({ ...this.#range, limit, offset }, { signal });
      this.#all.add(totals, views);
      inVain = this.#all.size > before ? 0 : inVain + limit;
    }
  }

  /**
   * The rows that account for all views, if there are any. Within minutes, the counts of a path can only rise, so if rows
   * of different requests add up to the totals of the last one, all are up to date and none is missing.
   */
  #countsThatAddUp(walk: DayRows, last: DayRows | undefined): DayCounts | undefined {
    if (walk.addsUp) return walk.counts;
    if (this.#all.size > 0 && this.#all.addsUp) return this.#all.counts;
    // Views of a path with two rows are added up. But a row repeated on a later page may have pushed out another row with
    // the same counts: only if a walk with other page boundaries repeats the same rows does the path have two rows.
    const isCertain = !walk.hasRepeats || (last !== undefined && hasSameRows(last.replaced, walk.replaced));
    return walk.isSteady && isCertain ? walk.merged() : undefined;
  }
}

const isSameWalk = (last: DayRows, walk: DayRows): boolean =>
  [last, walk].every(({ isSteady, replaced }) => isSteady && replaced.length === 0) &&
  equalCounts(last.totals, walk.totals) &&
  hasSameRows(last.rows, walk.rows);

const hasSameRows = (left: readonly CountedPath[], right: readonly CountedPath[]): boolean =>
  countChangedPages(left, right) === 0;
