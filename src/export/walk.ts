import type { Client, ReadOptions } from '../api/client.js';
import { EndlessWalkError, PausedError } from '../api/errors.js';
import { LIMITS } from '../api/schema.js';
import type { PageViews, ViewCounts, ViewsResponse } from '../api/schema.js';
import { addDays, type Day } from '../day.js';
import { countChangedPages, distanceOfCounts, equalCounts, subtractCounts, sumCounts } from './totals.js';

/** A day is walked this often, at most, when its walk does not add up. */
const MAX_WALKS = 3;

/** A day as it was read. */
export interface DayViews {
  readonly totals: ViewCounts;
  /** Each path stands here once. */
  readonly rows: readonly PageViews[];
}

/** One reading of a day from its first page to its last. */
interface Walk extends DayViews {
  /** Whether the pages disagreed on the totals, or named a path twice: rows moved while they were read. */
  readonly moved: boolean;
}

/** What a day's walks came to. `unattributed` is the site total less the sum of the rows. */
export interface WalkedDay extends DayViews {
  readonly verdict: 'consistent' | 'unattributed' | 'inconsistent';
  readonly unattributed: ViewCounts;
}

export interface WalkOptions extends ReadOptions {
  /** Whether late events have arrived, so that the day no longer changes. */
  readonly isSettled: () => boolean;
  /** What an earlier walk stored, when that added up. */
  readonly stored?: DayViews | undefined;
}

/**
 * Reads a day until a walk adds up: equal totals on every page, their sum over the rows, no path twice. One that never
 * does, or of which a further walk has to wait for the budget, is handed on as the best seen, `inconsistent`. A settled
 * day that reads the same twice and still does not add up is taken as it is, its difference `unattributed`: reading it a
 * third time would not help.
 *
 * When the totals and the first page are those stored, the day is `unchanged`, and no further page is asked for.
 *
 * Throws what the client throws, and an `EndlessWalkError` when the pages do not end.
 */
export async function walkDay(
  client: Pick<Client, 'views'>,
  day: Day,
  options: WalkOptions,
): Promise<WalkedDay | 'unchanged'> {
  const walks: Walk[] = [];
  while (walks.length < MAX_WALKS) {
    const walk = await walkOnce(client, day, options, walks.length === 0 ? options.stored : undefined).catch(
      (error: unknown): 'paused' => {
        if (walks.length > 0 && error instanceof PausedError) return 'paused';
        throw error;
      },
    );
    if (walk === 'unchanged') return walk;
    if (walk === 'paused') break;
    if (addsUp(walk)) return walked(walk, 'consistent');
    if (options.isSettled() && walks.some((earlier) => isSameReading(earlier, walk)))
      return walked(walk, 'unattributed');
    walks.push(walk);
  }
  const best = walks.reduce((left, right) => (gap(right) < gap(left) ? right : left));
  return walked(best, 'inconsistent');
}

async function walkOnce(
  client: Pick<Client, 'views'>,
  day: Day,
  options: ReadOptions,
  stored: DayViews | undefined,
): Promise<Walk | 'unchanged'> {
  const rows = new Map<string, PageViews>();
  let totals: ViewCounts | undefined;
  let moved = false;
  for await (const page of viewsPages(client, { dateFrom: day, dateTo: addDays(day, 1) }, options)) {
    if (totals === undefined && stored !== undefined && isStartOf(stored, page)) return 'unchanged';
    moved ||= totals !== undefined && !equalCounts(totals, page.totals);
    totals = page.totals;
    const known = rows.size;
    for (const row of page.views) rows.set(row.path, row);
    const added = rows.size - known;
    moved ||= added < page.views.length;
    if (added === 0 && page.views.length > 0 && page.hasMore)
      throw new EndlessWalkError(
        'a page of the export only repeats earlier ones, yet the server says that more follow',
      );
  }
  if (totals === undefined) throw new EndlessWalkError('the export has no page at all');
  return { totals, rows: [...rows.values()], moved };
}

/** Whether a first page is that of a stored day which goes on: the interface promises no order, so any rows will do. */
function isStartOf(stored: DayViews, page: ViewsResponse): boolean {
  const goesOn = page.hasMore && page.views.length > 0 && page.views.length < stored.rows.length;
  if (!goesOn || !equalCounts(stored.totals, page.totals)) return false;
  const byPath = new Map(stored.rows.map((row) => [row.path, row]));
  return page.views.every((row) => {
    const known = byPath.get(row.path);
    return known !== undefined && equalCounts(known, row);
  });
}

const addsUp = (walk: Walk): boolean => !walk.moved && gap(walk) === 0;

const gap = (walk: Walk): number => distanceOfCounts(walk.totals, sumCounts(walk.rows));

const isSameReading = (left: Walk, right: Walk): boolean =>
  !left.moved &&
  !right.moved &&
  equalCounts(left.totals, right.totals) &&
  countChangedPages(left.rows, right.rows) === 0;

const walked = ({ totals, rows }: Walk, verdict: WalkedDay['verdict']): WalkedDay => ({
  totals,
  rows,
  verdict,
  unattributed: subtractCounts(totals, sumCounts(rows)),
});

/** More than this many pages in one walk, a million rows, means that it does not end. */
const MAX_PAGES = 4_000;

/**
 * The pages of the views of a range, in the fewest requests. Throws an `EndlessWalkError` when a page is empty though
 * more are promised, or there is no end.
 */
export async function* viewsPages(
  client: Pick<Client, 'views'>,
  range: { readonly dateFrom: Day; readonly dateTo: Day },
  options?: ReadOptions,
): AsyncGenerator<ViewsResponse, void, void> {
  const limit = LIMITS.viewsPage.max;
  for (let page = 0; page < MAX_PAGES; page++) {
    const response = await client.views({ ...range, limit, offset: page * limit }, options);
    yield response;
    if (!response.hasMore) return;
    if (response.views.length === 0)
      throw new EndlessWalkError(
        `page ${page + 1} of the export is empty, yet the server says that more follow`,
      );
  }
  throw new EndlessWalkError(`the export did not end after ${MAX_PAGES} pages of ${limit}`);
}
