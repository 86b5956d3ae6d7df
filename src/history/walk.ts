import type { Client } from '../api/client.js';
import { EndlessWalkError } from '../api/errors/endless-walk-error.js';
import { viewsPages } from '../api/pages.js';
import type { PageViews, ViewCounts } from '../api/schema.js';
import { addDays, type Day } from '../day.js';
import { countChangedPages, distanceOfCounts, equalCounts, subtractCounts, sumCounts } from './counts.js';

/** A day is walked again this often, at most, when its walk does not add up. */
const MAX_WALKS = 3;

/** One reading of a day from its first page to its last. Each path stands in `rows` once. */
interface Walk {
  readonly totals: ViewCounts;
  readonly rows: readonly PageViews[];
  /** Whether the pages disagreed on the totals, or named a path twice: rows moved while they were read. */
  readonly moved: boolean;
}

/** What a day's walks came to. `unattributed` is the site total less the sum of the rows. */
export interface WalkedDay {
  readonly totals: ViewCounts;
  readonly rows: readonly PageViews[];
  readonly verdict: 'consistent' | 'unattributed' | 'inconsistent';
  readonly unattributed: ViewCounts;
}

/**
 * Reads a day until a walk adds up: equal totals on every page, their sum over the rows, no path twice. One that never
 * does is handed on as the best seen, `inconsistent`. A settled day that reads the same twice and still does not add
 * up is taken as it is, its difference `unattributed`: reading it a third time would not help.
 *
 * Throws what the client throws, and an `EndlessWalkError` when the pages do not end.
 */
export async function walkDay(
  client: Pick<Client, 'views'>,
  day: Day,
  isSettled: boolean,
  signal?: AbortSignal,
): Promise<WalkedDay> {
  const walks: Walk[] = [];
  while (walks.length < MAX_WALKS) {
    const walk = await walkOnce(client, day, signal);
    if (addsUp(walk)) return walked(walk, 'consistent');
    if (isSettled && walks.some((earlier) => isSameReading(earlier, walk)))
      return walked(walk, 'unattributed');
    walks.push(walk);
  }
  const best = walks.reduce((left, right) => (gap(right) < gap(left) ? right : left));
  return walked(best, 'inconsistent');
}

async function walkOnce(client: Pick<Client, 'views'>, day: Day, signal?: AbortSignal): Promise<Walk> {
  const rows = new Map<string, PageViews>();
  let totals: ViewCounts | undefined;
  let moved = false;
  for await (const page of viewsPages(client, { dateFrom: day, dateTo: addDays(day, 1) }, signal)) {
    moved ||= totals !== undefined && !equalCounts(totals, page.totals);
    totals = page.totals;
    const known = rows.size;
    for (const row of page.views) rows.set(row.path, row);
    const isNew = rows.size - known;
    moved ||= isNew < page.views.length;
    if (isNew === 0 && page.views.length > 0 && page.hasMore)
      throw new EndlessWalkError(
        'a page of the export only repeats earlier ones, yet the server says that more follow',
      );
  }
  if (totals === undefined) throw new EndlessWalkError('the export has no page at all');
  return { totals, rows: [...rows.values()], moved };
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
