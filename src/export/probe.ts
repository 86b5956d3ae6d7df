import type { Client, ReadOptions } from '../api/client.js';
import type { ViewCounts } from '../api/schema.js';
import { addDays, type Day, day, daysBetween, type DayRange } from '../day.js';
import { equalCounts, NO_VIEWS } from './counts.js';

/** No server of the interface has data from before this day. */
const EARLIEST_DAY = day('2015-01-01');

/** Site totals of a range of days, both included, for one request: totals are additive, and one row is enough. */
export async function probeTotals(
  client: Pick<Client, 'views'>,
  { first, last }: DayRange,
  options?: ReadOptions,
): Promise<ViewCounts> {
  const query = { dateFrom: first, dateTo: addDays(last, 1), limit: 1, offset: 0 };
  return (await client.views(query, options)).totals;
}

/** The most requests that `findFirstDay` sends. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/**
 * The first day with a view up to `last`, by bisection over the totals of everything before: one request, and one more
 * for each halving. Undefined when there is none.
 */
export async function findFirstDay(
  client: Pick<Client, 'views'>,
  last: Day,
  options?: ReadOptions,
): Promise<Day | undefined> {
  const hasViewsUpTo = async (candidate: Day) =>
    !equalCounts(await probeTotals(client, { first: EARLIEST_DAY, last: candidate }, options), NO_VIEWS);
  if (!(await hasViewsUpTo(last))) return undefined;
  let low = 0;
  let high = daysBetween(EARLIEST_DAY, last);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await hasViewsUpTo(addDays(EARLIEST_DAY, middle))) high = middle;
    else low = middle + 1;
  }
  return addDays(EARLIEST_DAY, low);
}
