import type { Client, ReadOptions } from '../api/client.js';
import { RefusedError, TryLaterError } from '../api/errors.js';
import type { ViewCounts } from '../api/schema.js';
import { addDays, type Day, type DayRange, rangeOf } from '../day.js';
import type { CountedPath } from '../history/days.js';

export const NO_VIEWS: ViewCounts = { human: 0, ai: 0, total: 0 };

export const sumCounts = (rows: Iterable<ViewCounts>): ViewCounts => {
  const sum = { ...NO_VIEWS };
  for (const { human, ai, total } of rows) {
    sum.human += human;
    sum.ai += ai;
    sum.total += total;
  }
  return sum;
};

export const addCounts = (left: ViewCounts, right: ViewCounts): ViewCounts => sumCounts([left, right]);

export const subtractCounts = (left: ViewCounts, right: ViewCounts): ViewCounts => ({
  human: left.human - right.human,
  ai: left.ai - right.ai,
  total: left.total - right.total,
});

export const equalCounts = (left: ViewCounts, right: ViewCounts): boolean =>
  left.human === right.human && left.ai === right.ai && left.total === right.total;

/**
 * Number of pages whose counts differ between two readings of a day, including new and vanished
 * pages and extra rows of a repeated path, in any order.
 */
export function countChangedPages(before: readonly CountedPath[], after: readonly CountedPath[]): number {
  const unmatched = new Map(before.map((row) => [row.path, row]));
  let changed = before.length - unmatched.size;
  for (const row of after) {
    const earlier = unmatched.get(row.path);
    unmatched.delete(row.path);
    if (earlier === undefined || !equalCounts(earlier, row)) changed++;
  }
  return changed + unmatched.size;
}

/** Site totals of a range of days, both included, for one request: totals are additive, and one row is enough. */
export async function probeTotals(
  client: Pick<Client, 'views'>,
  { first, last }: DayRange,
  options?: ReadOptions,
): Promise<ViewCounts> {
  const query = { dateFrom: first, dateTo: addDays(last, 1), limit: 1, offset: 0 };
  return (await client.views(query, options)).totals;
}

/**
 * The totals of a range; undefined if the platform refuses the range, perhaps because its plan does not keep such old
 * days, or fails because it is too long.
 */
export async function totalsIfAnswered(
  client: Pick<Client, 'views'>,
  range: DayRange,
  options?: ReadOptions,
): Promise<ViewCounts | undefined> {
  try {
    return await probeTotals(client, range, options);
  } catch (error) {
    if (error instanceof RefusedError && error.status !== 401) return undefined;
    const isTooLong =
      error instanceof TryLaterError && error.reason === 'server-error' && range.first < range.last;
    if (isTooLong) return undefined;
    throw error;
  }
}

/** Whether a range has some views. */
export async function viewsIn(
  ...asked: Parameters<typeof totalsIfAnswered>
): Promise<'some' | 'none' | 'refused'> {
  const totals = await totalsIfAnswered(...asked);
  if (totals === undefined) return 'refused';
  return equalCounts(totals, NO_VIEWS) ? 'none' : 'some';
}

/** The largest number up to `most` for which it holds: `first` is doubled until it does not, and the rest is halved. */
export async function largest(
  holds: (number: number) => Promise<boolean>,
  first: number,
  most: number,
): Promise<number> {
  let [known, beyond] = [0, Math.min(first, most + 1)];
  while (beyond <= most && (await holds(beyond)))
    [known, beyond] = [beyond, beyond < most ? Math.min(2 * beyond, most) : most + 1];
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2);
    if (await holds(middle)) known = middle;
    else beyond = middle;
  }
  return known;
}

/** As `largest`, but the number after it is tried `again`, because one refusal may be a mistake. */
export async function largestConfirmed(
  holds: (number: number) => Promise<boolean>,
  first: number,
  most: number,
  again = holds,
): Promise<number> {
  let known = await largest(holds, first, most);
  while (known < most && (await again(known + 1))) {
    const base = known + 1;
    known = base + (await largest((number) => holds(base + number), 1, most - base));
  }
  return known;
}

/** The totals that are stored for a day. */
export interface StoredTotals extends ViewCounts {
  readonly day: Day;
}

/** A stored day whose totals are no longer those of the platform. */
export interface DifferingDay<Stored extends StoredTotals = StoredTotals> {
  readonly stored: Stored;
  readonly platform: ViewCounts;
}

/**
 * Shorter ranges of stored days are not compared on a server that refuses longer ones: that would
 * take too many requests.
 */
const SHORTEST_COMPARED = 7;

/**
 * Compares stored days, oldest first, with the platform: one request for each run of neighboring
 * days when nothing differs, and about one for each halving to find a day that does. Days of ranges
 * that the platform refuses are added to `refused`; after two such ranges, all older ones count as
 * refused too, because platforms keep days only for a time.
 *
 * It compares only sums, so it misses a change within a day that keeps its totals, or two days that
 * change by opposite amounts.
 */
export async function* findDifferingDays<Stored extends StoredTotals>(
  client: Pick<Client, 'views'>,
  stored: readonly Stored[],
  options?: ReadOptions,
  refused: Day[] = [],
): AsyncGenerator<DifferingDay<Stored>> {
  const newestFirst = runsOfNeighbors(stored).reverse();
  let inARow = 0;
  for (let days = newestFirst.shift(); days !== undefined; days = newestFirst.shift()) {
    const platform = inARow < 2 ? await totalsIfAnswered(client, rangeOfTotals(days), options) : undefined;
    if (platform !== undefined) {
      inARow = 0;
      yield* narrow(client, days, platform, options);
    } else if (days.length < 2 * SHORTEST_COMPARED) {
      inARow++;
      refused.push(...days.map(({ day }) => day));
    } else newestFirst.unshift(...halves(days).toReversed());
  }
}

const rangeOfTotals = (days: readonly StoredTotals[]): DayRange => rangeOf(days.map(({ day }) => day));

const halves = <Stored extends StoredTotals>(days: readonly Stored[]) => {
  const middle = Math.ceil(days.length / 2);
  return [days.slice(0, middle), days.slice(middle)] as const;
};

/** Totals are additive, so those of the second half follow from those of the first. */
async function* narrow<Stored extends StoredTotals>(
  client: Pick<Client, 'views'>,
  days: readonly Stored[],
  platform: ViewCounts,
  options: ReadOptions | undefined,
): AsyncGenerator<DifferingDay<Stored>> {
  if (equalCounts(sumCounts(days), platform)) return;
  // Counts are never negative: if a range has no views, none of its days has any.
  if (days.length === 1 || equalCounts(platform, NO_VIEWS)) {
    for (const stored of days) if (!equalCounts(stored, platform)) yield { stored, platform };
    return;
  }
  const [first, second] = halves(days);
  const ofFirst = await probeTotals(client, rangeOfTotals(first), options);
  yield* narrow(client, first, ofFirst, options);
  yield* narrow(client, second, subtractCounts(platform, ofFirst), options);
}

/** Splits days at their gaps: the totals of a range would count the views of a day that is not stored. */
export function runsOfNeighbors<One extends { readonly day: Day }>(days: readonly One[]): One[][] {
  const runs: One[][] = [];
  for (const one of days) {
    const run = runs.at(-1);
    const previous = run?.at(-1)?.day;
    if (previous !== undefined && addDays(previous, 1) === one.day) run?.push(one);
    else runs.push([one]);
  }
  return runs;
}
