import type { Client, ReadOptions } from '../api/client.js';
import { TOO_MANY_VIEWS } from '../api/schema.js';
import { addDays, type Day } from '../day.js';
import { ReadershipError } from '../errors.js';
import { addCounts, equalCounts, NO_VIEWS, sumCounts } from './totals.js';
import { probeTotals, totalsIfAnswered } from './probe.js';

/** What is wrong with a platform whose ranges include the day in `dateTo`. */
export const INCLUSIVE =
  'it counts the day in dateTo as well, which the documented API excludes, so every day would count twice';

/** The sums of days are not the totals of their range: no day of this platform can be trusted. */
export class AdditivityError extends ReadershipError {}

/**
 * Throws an `AdditivityError` if the totals of two neighboring days do not add up to those of their range. By the
 * documented API, a range that ends where it begins is empty, so one request is usually enough.
 */
export async function expectAdditive(
  client: Pick<Client, 'views'>,
  first: Day,
  options?: ReadOptions,
): Promise<void> {
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
export async function hasPageTotals(
  client: Pick<Client, 'views'>,
  day: Day,
  options?: ReadOptions,
): Promise<boolean> {
  const range = { dateFrom: day, dateTo: addDays(day, 1) };
  const pageOf = (limit: number) => client.views({ ...range, limit, offset: 0 }, options);
  const [one, two] = [await pageOf(1), await pageOf(2)];
  const isOwn = [one, two].every(({ totals, views }) => equalCounts(totals, sumCounts(views)));
  return isOwn && one.views.length < two.views.length && !equalCounts(one.totals, two.totals);
}
