import type { ReadOptions, ViewsClient } from '../api/client.js';
import { RefusedError, TryLaterError } from '../api/errors.js';
import { TOO_MANY_VIEWS, type ViewCounts } from '../api/schema.js';
import { addDays, type Day, type DayRange } from '../day.js';
import { addCounts, equalCounts, NO_VIEWS, sumCounts } from './totals.js';
import { ReadershipError } from '../errors.js';

/** Site totals of a range of days, both included, for one request: totals are additive, and one row is enough. */
export async function probeTotals(
  client: ViewsClient,
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
  client: ViewsClient,
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
  client: ViewsClient,
  range: DayRange,
  options?: ReadOptions,
): Promise<'some' | 'none' | 'refused'> {
  const totals = await totalsIfAnswered(client, range, options);
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

/** What is wrong with a platform whose ranges include the day in `dateTo`. */
export const INCLUSIVE =
  'it counts the day in dateTo as well, which the documented API excludes, so every day would count twice';

/** The sums of days are not the totals of their range: no day of this platform can be trusted. */
export class AdditivityError extends ReadershipError {}

/**
 * Throws an `AdditivityError` if the totals of two neighboring days do not add up to those of their range. By the
 * documented API, a range that ends where it begins is empty, so one request is usually enough.
 */
export async function expectAdditive(client: ViewsClient, first: Day, options?: ReadOptions): Promise<void> {
  const last = addDays(first, 1);
  const none = await totalsIfAnswered(client, { first: last, last: first }, options);
  const isInclusive = none !== undefined && !equalCounts(none, NO_VIEWS);
  if (none !== undefined && !isInclusive) return;
  const totalOf = (from: Day, to: Day) => probeTotals(client, { first: from, last: to }, options);
  const both = await totalsIfAnswered(client, { first, last }, options);
  if (both === undefined || equalCounts(both, NO_VIEWS) || both.total >= TOO_MANY_VIEWS) return;
  const [one, other] = [await totalOf(first, first), await totalOf(last, last)];
  const sum = addCounts(one, other);
  if (equalCounts(sum, both)) return;
  // Late events may have arrived in between.
  const after = await totalOf(first, last);
  if (both.total <= sum.total && sum.total <= after.total && both.total < after.total) return;
  const why = isInclusive ? INCLUSIVE : 'the totals of single days do not add up to the total of their range';
  // Each of these answers counts a single row.
  if (await hasPageTotals(client, first, options)) return;
  throw new AdditivityError(
    `The platform's totals cannot be trusted: ${why} (${first} and ${last} have ${one.total} and ${other.total} views, but together ${both.total}). No day is stored until its operators fix this.`,
  );
}

/** Whether the totals of a platform are those of one page of rows: each of two pages that begin alike has its own. */
export async function hasPageTotals(client: ViewsClient, day: Day, options?: ReadOptions): Promise<boolean> {
  const range = { dateFrom: day, dateTo: addDays(day, 1) };
  const pageOf = (limit: number) => client.views({ ...range, limit, offset: 0 }, options);
  const [one, two] = [await pageOf(1), await pageOf(2)];
  const isOwn = [one, two].every(({ totals, views }) => equalCounts(totals, sumCounts(views)));
  return isOwn && one.views.length < two.views.length && !equalCounts(one.totals, two.totals);
}
