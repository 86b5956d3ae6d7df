import { setMaxListeners } from 'node:events';
import pMap from 'p-map';
import type { Client } from '../api/client.js';
import { PausedError } from '../api/errors.js';
import type { Lease } from '../api/retry.js';
import { type Day, lastEndedDay } from '../day.js';
import { messageOf } from '../errors.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { DayFailures } from './failures.js';
import { confirmDay, readStoredDay, recordFailedDay, storeDay, type StoreOutcome } from './ledger.js';
import { type DayState, isSettled, type PlannedDay, requestsFor } from './plan.js';
import { DayReading, readUnfinishedDays } from './unfinished.js';
import { walkDay, type WalkedDay } from './walk.js';

/** What became of one day. */
export type DayResult =
  | {
      readonly day: Day;
      readonly outcome: StoreOutcome;
      readonly state: Exclude<DayState, 'failed'>;
      readonly rows: number;
    }
  | { readonly day: Day; readonly outcome: 'failed'; readonly error: unknown };

/** What a load did. `stopped` is why it ended before its last day; the days not reached are due next time. */
export interface LoadOutcome {
  readonly results: readonly DayResult[];
  readonly stopped?: unknown;
}

/** What stopped a load comes before the days that failed by themselves. */
export function faultsOfLoad({ results, stopped }: LoadOutcome): unknown[] {
  const ofDays = results.flatMap((result) => (result.outcome === 'failed' ? [result.error] : []));
  return stopped === undefined ? ofDays : [stopped, ...ofDays];
}

/** Begins work when its turn comes. */
type InTurn = (work: () => Promise<void>) => Promise<void>;

export interface LoadTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views' | 'lease'>;
  readonly project: string;
  readonly settleDays: number;
  /** Days fetched at the same time. */
  readonly concurrency: number;
  /** The turns of days that several projects share. */
  readonly inTurn?: InTurn | undefined;
  readonly now: () => Date;
  readonly signal?: AbortSignal | undefined;
  readonly onDay?: ((result: DayResult) => void) | undefined;
}

/**
 * Loads days in their order. Each is stored, or recorded as failed, by itself: one that fails leaves what was stored of
 * it, and the others go on. A failure that every other day would meet as well (a refused key, a server that is down, an
 * interruption) stops the load, and days under way are dropped whole. When the budget is spent no further day begins;
 * those under way have their requests promised, and are finished.
 */
export async function loadDays(task: LoadTask, days: readonly PlannedDay[]): Promise<LoadOutcome> {
  const results: DayResult[] = [];
  const stop = new AbortController();
  const signal = task.signal ? AbortSignal.any([task.signal, stop.signal]) : stop.signal;
  // Every request listens to it, some until shortly after they have ended; Node would warn of more than ten.
  setMaxListeners(0, signal);
  const failures = new DayFailures(task, days, signal);
  let paused: PausedError | undefined;
  let newestRead: number | undefined;

  const unfinished = await readUnfinishedDays(task.warehouse, task.project);
  const attempt = async (planned: PlannedDay): Promise<void> => {
    const pagesKept = unfinished.get(planned.day) ?? 0;
    const requests = Math.max(1, expectedRequests(planned, newestRead) - pagesKept);
    const lease = await task.client.lease(requests, planned.priority, signal);
    try {
      const result = await attemptDay(task, planned, lease, pagesKept > 0, failures, signal);
      if (result === undefined) return;
      results.push(result);
      task.onDay?.(result);
      if (result.outcome !== 'failed') {
        newestRead = requestsFor(result.rows);
        failures.endWith(result.day);
      } else if (await failures.areOfAllDays(result.day)) stop.abort(result.error);
    } finally {
      await lease.end();
    }
  };
  const inTurn: InTurn = task.inTurn ?? ((work) => work());
  const visit = async (planned: PlannedDay): Promise<void> => {
    try {
      await inTurn(async () => {
        if (!signal.aborted && paused === undefined) await attempt(planned);
      });
    } catch (error) {
      if (error instanceof PausedError) paused ??= error;
      else stop.abort(error);
    }
  };

  await task.warehouse.withOneThread(() => pMap(days, visit, { concurrency: task.concurrency }));
  if (signal.aborted) return { results, stopped: signal.reason };
  return paused === undefined ? { results } : { results, stopped: paused };
}

/** A day never read is likely to be as long as its neighbor, which was read just before. */
const expectedRequests = ({ due, requests }: PlannedDay, ofNeighbor: number | undefined): number =>
  due === 'missing' ? (ofNeighbor ?? requests) : requests;

/** Loads a day that has ended, or records why it could not be loaded. Throws what every other day would meet as well. */
async function attemptDay(
  task: LoadTask,
  planned: PlannedDay,
  lease: Lease,
  isUnfinished: boolean,
  failures: DayFailures,
  signal: AbortSignal,
): Promise<DayResult | undefined> {
  try {
    return await loadDay(task, planned, lease, isUnfinished, signal);
  } catch (error) {
    // Whose failure it is may take a request of its own.
    await lease.end();
    // Once the export stops, a request under way ends with the reason of the stop: the failure of another day.
    if (signal.aborted || !(await failures.isOfDayAlone(planned.day, error))) throw error;
    const { project, now } = task;
    await recordFailedDay(task.warehouse, { project, day: planned.day, now: now() }, messageOf(error));
    return { day: planned.day, outcome: 'failed', error };
  }
}

async function loadDay(
  task: LoadTask,
  planned: PlannedDay,
  lease: Lease,
  isUnfinished: boolean,
  signal: AbortSignal,
): Promise<DayResult | undefined> {
  const { warehouse, client, project, now } = task;
  const { day, due } = planned;
  const hasEnded = () => day <= lastEndedDay(now());
  if (!hasEnded()) return undefined;
  const settled = () => isSettled(day, now(), task.settleDays);
  const stored = due === 'provisional' ? await readStoredDay(warehouse, { project, day }) : undefined;
  const reading = await DayReading.open({ warehouse, project, day }, client, lease, isUnfinished);
  const walked = await walkDay(reading, day, { isSettled: settled, stored, signal }).finally(() =>
    reading.end(isUnfinished),
  );
  signal.throwIfAborted();
  // The answer may have told that the platform's clock is behind.
  if (!hasEnded()) return undefined;
  const at = { project, day, now: now() };
  if (walked === 'unchanged') {
    const state = settled() ? 'final' : 'provisional';
    await confirmDay(warehouse, at, state);
    return { day, outcome: 'unchanged', state, rows: stored?.rows.length ?? 0 };
  }
  const state = stateOf(walked, settled());
  const outcome = await storeDay(warehouse, at, walked, state, planned.isKnown);
  return { day, outcome, state, rows: walked.rows.length };
}

const stateOf = ({ doubt }: WalkedDay, settled: boolean): Exclude<DayState, 'failed'> =>
  doubt !== undefined ? 'inconsistent' : settled ? 'final' : 'provisional';
