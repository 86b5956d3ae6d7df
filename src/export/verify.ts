import type { ReadOptions, ViewsClient } from '../api/client.js';
import type { ViewCounts } from '../api/schema.js';
import { addDays, type Day, type DayRange, dayOf, lastEndedDay, rangeOf } from '../day.js';
import { equalCounts, NO_VIEWS, subtractCounts, sumCounts } from './totals.js';
import { markDiffering, readLastVerification, recordVerification } from '../state/days.js';
import { readFact, recordFact } from '../state/platform.js';
import { DISAGREEMENT, type Disagreement, readPageSize } from './paging.js';
import { type DayRecord, readDayRecords, recentFinalDays, finalDays } from './day-records.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import { type PlannedDay, requestsFor, runsOfNeighbors } from './plan.js';
import { isSmaller, KEPT_FROM, Retention } from './retention.js';
import { expectAdditive, hasPageTotals, probeTotals, totalsIfAnswered } from './probe.js';

/** A final day was not smaller before, or it would be inconsistent. */
const SETTLED = { isSettled: true, wasSmaller: false } as const;

/** What a comparison of stored days with the platform found. */
export interface CheckedDays {
  readonly days: number;
  /** Days whose totals differ from those of the platform. */
  readonly differing: readonly Day[];
  /** Days that the platform no longer has, or not whole; their stored data is kept. */
  readonly forgotten: readonly Day[];
  /** Days that could not be compared, because the platform refuses their range. */
  readonly refused: readonly Day[];
  /** Why no day could be compared. */
  readonly disagreement?: Disagreement;
}

const INCOMPARABLE: CheckedDays = {
  days: 0,
  differing: [],
  forgotten: [],
  refused: [],
  disagreement: 'page totals',
};

/** Also what was loaded again. */
export interface Audit extends CheckedDays {
  readonly repaired?: LoadOutcome;
}

/**
 * Compares the recent final days with the platform, once a day. Those that differ are due then. Throws what the client
 * throws, and an `AdditivityError` if the sums of days cannot be trusted.
 */
export async function checkRecentDays(task: LoadTask): Promise<CheckedDays | undefined> {
  const { history, state, client, project, now, signal } = task;
  const last = readLastVerification(state, project);
  if (last !== undefined && dayOf(last) === dayOf(now())) return undefined;
  const records = await readDayRecords({ history, state }, project);
  // Without final days to compare, a few requests show whether the totals of days add up.
  if (!finalDays(records).some(({ total }) => total > 0))
    await expectAdditive(client, addDays(lastEndedDay(now()), -1), { signal });
  return compare(task, recentFinalDays(records, now()), { marks: true });
}

/** Compares the whole settled history with the platform, and loads what differs with `repair`. Throws what the client throws; nothing is lost then. */
export async function auditHistory(task: LoadTask, { repair }: { readonly repair: boolean }): Promise<Audit> {
  const { history, state, project } = task;
  const records = await readDayRecords({ history, state }, project);
  const found = await compare(task, finalDays(records), { marks: repair });
  if (!repair) return found;
  const { rows: pageSize } = readPageSize(state, project, task.now());
  const planned = found.differing.toSorted().map((day): PlannedDay => {
    const requests = requestsFor(records.get(day)?.pages ?? 0, pageSize);
    return { day, due: 'reload', stage: 'past', requests };
  });
  return { ...found, repaired: await loadDays(task, planned) };
}

/**
 * Finds stored days that differ. If `marks`, each is marked as failed at once, so that it is due even if a pause stops
 * the check. Days that the platform forgot are kept.
 */
async function compare(
  task: LoadTask,
  known: readonly DayRecord[],
  { marks }: { readonly marks: boolean },
): Promise<CheckedDays> {
  const { state, client, project, now, signal } = task;
  if (readFact(state, project, DISAGREEMENT, now()) === 'page totals') return INCOMPARABLE;
  const keptFrom = readFact(state, project, KEPT_FROM, now());
  const isKept = ({ day }: DayRecord) => keptFrom === undefined || day >= keptFrom;
  const stored = known.filter(isKept);
  const retention = new Retention(task);
  const differing: Day[] = [];
  const forgotten = known.filter((one) => !isKept(one)).map(({ day }) => day);
  let isSure = false;
  const refused: Day[] = [];
  for await (const found of findDifferingDays(client, stored, { signal }, refused)) {
    const { day } = found.stored;
    const isFewer = isSmaller(found.platform, found.stored);
    // The totals of one page are never larger than those of all rows.
    if (isFewer && !isSure) {
      if (await hasPageTotals(client, day, { signal })) {
        await recordFact(state, project, DISAGREEMENT, 'page totals', now());
        return INCOMPARABLE;
      }
      isSure = true;
    }
    const verdict = isFewer && (await retention.judge({ ...SETTLED, day, platform: found.platform }));
    const isGone = verdict === 'deleted';
    (isGone ? forgotten : differing).push(day);
    if (!marks || isGone) continue;
    // Days also differ if sums cannot be trusted.
    if (differing.length === 1) await expectAdditive(client, addDays(day, -1), { signal });
    await markDiffering(state, { project, day }, found.stored.attempted_at);
  }
  // What the platform refuses may be older than what it keeps.
  if (refused.length > 0) await retention.keptFrom();
  const compared = stored.map(({ day }) => day).filter((day) => !refused.includes(day));
  const yesterday = lastEndedDay(now());
  // If the platform refuses every range, a request for a day that it must have shows whether it refuses the key.
  if (stored.length > 0 && compared.length === 0)
    await probeTotals(client, { first: yesterday, last: yesterday }, { signal });
  if (compared.length > 0) {
    const count = differing.length + forgotten.length;
    await recordVerification(state, project, rangeOf(compared), count, now());
  }
  return { days: compared.length, differing, forgotten, refused };
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
  client: ViewsClient,
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
  client: ViewsClient,
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
