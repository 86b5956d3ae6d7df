import type { Client, ReadOptions } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import { addDays, type Day, day, daysBetween } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { equalCounts, NO_VIEWS, probeTotals, totalsIfAnswered } from './totals.js';

/** No server of the API has data from before this day. */
const EARLIEST_DAY = day('2015-01-01');

/** Lengths of ranges, in days, that are tried on a server that refuses longer ones. */
const SHORTER_RANGES = [366, 31, 1];

/** The start of the history cannot be determined from the platform. */
class FirstDayError extends ReadershipError {
  readonly exitCode = 1;

  constructor(why: string, options?: ErrorOptions) {
    super(
      `Could not find the first day of the history: ${why} To export without this search, set history.start in readership.yaml to the first day to load.`,
      options,
    );
  }
}

/** The most requests that `findFirstDay` sends to a server that answers for any range. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/**
 * The first day with a view up to `last`: one request, and one more for each halving of the days
 * before it. Undefined when there is none. On a server that refuses long ranges it goes back in
 * growing steps, to days that have no views or are refused as well. Throws a `FirstDayError` where
 * that is not possible either.
 */
export async function findFirstDay(
  client: Pick<Client, 'views'>,
  last: Day,
  options?: ReadOptions,
): Promise<Day | undefined> {
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  const refused = new Set<number>();
  let length = longest;
  /** Whether there are views up to the day `age` days before the last; undefined if refused. */
  const hasViewsAt = async (age: number): Promise<boolean | undefined> => {
    const end = addDays(last, -age);
    const range = { first: addDays(end, 1 - Math.min(length, longest - age)), last: end };
    const totals = await totalsIfAnswered(client, range, options);
    if (totals === undefined) refused.add(age);
    return totals && !equalCounts(totals, NO_VIEWS);
  };

  let found = await hasViewsAt(0);
  if (found === undefined) await expectAnswer(client, last, options);
  for (const shorter of SHORTER_RANGES) {
    if (found !== undefined) break;
    length = Math.min(shorter, longest);
    found = await hasViewsAt(0);
  }
  if (found !== true && length === longest) return undefined;
  if (found !== true)
    throw new FirstDayError(
      `the platform refuses ranges of more than ${length} days, and the latest ones have no views.`,
    );

  let known = 0;
  let beyond = longest;
  if (length < longest)
    for (beyond = length; beyond < longest && (await hasViewsAt(beyond)) === true; beyond *= 2)
      known = beyond;
  beyond = Math.min(beyond, longest);
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2);
    if ((await hasViewsAt(middle)) === true) known = middle;
    else beyond = middle;
  }
  // If older ranges are refused, the history begins with the oldest range that is returned.
  return addDays(last, refused.has(beyond) ? 1 - known - length : -known);
}

/** If a single day is refused too, the length of the range is not the reason. */
async function expectAnswer(client: Pick<Client, 'views'>, day: Day, options?: ReadOptions): Promise<void> {
  try {
    await probeTotals(client, { first: day, last: day }, options);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    throw new FirstDayError(messageOf(error), { cause: error });
  }
}
