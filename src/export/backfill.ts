import { addDays, type Day, daysBetween, type DayRange } from '../day.js';
import { recordFact } from '../state/facts.js';
import { forgetFailuresBefore } from '../state/days.js';
import { KEPT_FROM } from './facts.js';
import { storeEmptyDays } from './store-day.js';
import { type DayResult, isEmpty, isRefused, type LoadTask, MOST_IN_A_ROW } from './load.js';
import type { PlannedDay } from './plan.js';
import { largest, largestConfirmed, runsOfNeighbors, viewsIn } from './totals.js';

/**
 * Loads the days of the past, with what `load` adds to `results`. A load ends early after a few empty or refused days in a
 * row: an empty stretch then costs a few requests for totals, and days that the platform no longer keeps are skipped.
 * Returns the first day that it keeps, if it refuses the first of the range.
 */
export async function backfill(
  task: LoadTask,
  range: DayRange,
  days: readonly PlannedDay[],
  results: DayResult[],
  load: (days: readonly PlannedDay[]) => Promise<readonly DayResult[]>,
): Promise<Day | undefined> {
  let keptFrom: Day | undefined;
  for (let left = days; left.length > 0;) {
    const loaded = await load(left);
    if (loaded.length === 0) break;
    const done = new Set(loaded.map(({ day }) => day));
    left = left.filter(({ day }) => !done.has(day));
    keptFrom ??= await findKept(task, range, results);
    const first = keptFrom ?? range.first;
    const empty = await skipEmpty(task, first, loaded);
    left = left.filter(
      ({ day }) => day >= first && (empty === undefined || day < empty.first || day > empty.last),
    );
  }
  return keptFrom;
}

/** Finds the first day that the platform keeps, if it refused days and the first one too. Refused days are forgotten. */
async function findKept(
  { client, state, project, signal, now }: LoadTask,
  range: DayRange,
  results: DayResult[],
): Promise<Day | undefined> {
  const isKept = async (day: Day) =>
    (await viewsIn(client, { first: day, last: day }, { signal })) !== 'refused';
  const kept = results.filter((result) => !isRefused(result)).map(({ day }) => day);
  const oldest = kept.sort().at(0);
  const refused = results
    .filter(isRefused)
    .map(({ day }) => day)
    .filter((day) => oldest !== undefined && day < oldest);
  const newest = refused.sort().at(-1);
  if (oldest === undefined || newest === undefined || refused.length < MOST_IN_A_ROW) return undefined;
  if (await isKept(range.first)) return undefined;
  const most = daysBetween(newest, oldest) - 1;
  const keptDays = await largestConfirmed(
    (days) => isKept(addDays(oldest, -days)),
    Math.ceil(most / 2),
    most,
  );
  const first = addDays(oldest, -keptDays);
  await forgetFailuresBefore(state, project, first);
  await recordFact(state, project, KEPT_FROM, first, now());
  results.splice(0, results.length, ...results.filter(({ day }) => day >= first));
  return first;
}

/** Stores the days without views that come right before a few of them, found with a few requests for totals. */
async function skipEmpty(
  { client, history, state, project, signal, now }: LoadTask,
  first: Day,
  results: readonly DayResult[],
): Promise<DayRange | undefined> {
  const empty = results.filter(isEmpty).sort((one, other) => daysBetween(other.day, one.day));
  const stretch = runsOfNeighbors(empty).find((run) => run.length >= MOST_IN_A_ROW);
  if (stretch?.[0] === undefined) return undefined;
  const last = addDays(stretch[0].day, -1);
  const before = (length: number) => ({ first: addDays(last, 1 - length), last });
  const isEmptyFor = async (length: number) => (await viewsIn(client, before(length), { signal })) === 'none';
  const length = await largest(isEmptyFor, 2 * MOST_IN_A_ROW, daysBetween(first, last) + 1);
  if (length === 0) return undefined;
  await storeEmptyDays({ history, state }, project, before(length), now());
  return before(length);
}
