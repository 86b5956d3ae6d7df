import type { Client, ReadOptions } from '../api/client.js';
import type { ViewCounts } from '../api/schema.js';
import { addDays, type Day, rangeOf } from '../day.js';
import { equalCounts, NO_VIEWS, subtractCounts, sumCounts } from './counts.js';
import { probeTotals } from './probe.js';

/** The totals that are stored for a day. */
export interface StoredTotals extends ViewCounts {
  readonly day: Day;
}

/** A stored day whose totals are no longer those of the platform. */
export interface DifferingDay {
  readonly day: Day;
  readonly stored: ViewCounts;
  readonly platform: ViewCounts;
}

/** Whether the platform no longer has any view of a day that is stored: what it forgot is no correction. */
export const isForgotten = ({ platform, stored }: DifferingDay): boolean =>
  equalCounts(platform, NO_VIEWS) && !equalCounts(stored, NO_VIEWS);

/**
 * Holds stored days, oldest first, against the platform: one request for each run of neighbouring days when nothing
 * differs, and about one for each halving to find a day that does.
 *
 * It sees sums only: a change inside a day that keeps its totals, or two days that change by opposite amounts, pass.
 */
export async function* findDifferingDays(
  client: Pick<Client, 'views'>,
  stored: readonly StoredTotals[],
  options?: ReadOptions,
): AsyncGenerator<DifferingDay> {
  for (const run of runsOfNeighbours(stored))
    yield* narrow(client, run, await totalsOf(client, run, options), options);
}

/** Totals are additive, so those of the second half are what remains after the first. */
async function* narrow(
  client: Pick<Client, 'views'>,
  days: readonly StoredTotals[],
  platform: ViewCounts,
  options: ReadOptions | undefined,
): AsyncGenerator<DifferingDay> {
  if (equalCounts(sumCounts(days), platform)) return;
  // Counts are never negative: where nothing is left of a range, nothing is left of any of its days.
  if (days.length === 1 || equalCounts(platform, NO_VIEWS)) {
    yield* days
      .filter((stored) => !equalCounts(stored, platform))
      .map((stored) => difference(stored, platform));
    return;
  }
  const middle = Math.ceil(days.length / 2);
  const firstHalf = days.slice(0, middle);
  const ofFirstHalf = await totalsOf(client, firstHalf, options);
  yield* narrow(client, firstHalf, ofFirstHalf, options);
  yield* narrow(client, days.slice(middle), subtractCounts(platform, ofFirstHalf), options);
}

const difference = ({ day, human, ai, total }: StoredTotals, platform: ViewCounts): DifferingDay => ({
  day,
  stored: { human, ai, total },
  platform,
});

function totalsOf(
  client: Pick<Client, 'views'>,
  run: readonly StoredTotals[],
  options: ReadOptions | undefined,
): Promise<ViewCounts> {
  return probeTotals(client, rangeOf(run.map(({ day }) => day)), options);
}

/** Splits days at their gaps: the totals of a range would count the views of a day that is not stored. */
function runsOfNeighbours(days: readonly StoredTotals[]): StoredTotals[][] {
  const runs: StoredTotals[][] = [];
  for (const stored of days) {
    const run = runs.at(-1);
    const previous = run?.at(-1);
    if (run !== undefined && previous !== undefined && addDays(previous.day, 1) === stored.day)
      run.push(stored);
    else runs.push([stored]);
  }
  return runs;
}
