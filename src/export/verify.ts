import { addDays, type Day, dayOf, lastEndedDay, rangeOf } from '../day.js';
import { markDiffering, readLastVerification, recordVerification } from '../state/days.js';
import { readFact, recordFact } from '../state/facts.js';
import { readPageSize } from './page-size.js';
import { type DayRecord, readDayRecords, recentTotals, settledTotals } from './day-records.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import { type PlannedDay, requestsFor } from './plan.js';
import { isSmaller, KEPT_FROM, Retention } from './retention.js';
import { expectAdditive, hasPageTotals } from './additivity.js';
import { DISAGREEMENT, type Disagreement } from './disagreement.js';
import { findDifferingDays, probeTotals } from './totals.js';

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
  if (!settledTotals(records).some(({ total }) => total > 0))
    await expectAdditive(client, addDays(lastEndedDay(now()), -1), { signal });
  return compare(task, recentTotals(records, now()), { marks: true });
}

/** Compares the whole settled history with the platform, and loads what differs with `repair`. Throws what the client throws; nothing is lost then. */
export async function auditHistory(task: LoadTask, { repair }: { readonly repair: boolean }): Promise<Audit> {
  const { history, state, project } = task;
  const records = await readDayRecords({ history, state }, project);
  const found = await compare(task, settledTotals(records), { marks: repair });
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
  const retention = new Retention(task, { signal });
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
