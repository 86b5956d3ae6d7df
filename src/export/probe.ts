import type { Client, ReadOptions } from '../api/client.js';
import { RefusedError, TryLaterError } from '../api/errors.js';
import type { ViewCounts } from '../api/schema.js';
import { addDays, type DayRange } from '../day.js';
import { equalCounts, NO_VIEWS } from './totals.js';

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
