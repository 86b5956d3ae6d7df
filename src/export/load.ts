import { setMaxListeners } from 'node:events';
import pLimit, { type LimitFunction } from 'p-limit';
import pMap from 'p-map';
import type { Client } from '../api/client.js';
import { PausedError } from '../api/errors.js';
import type { Lease } from '../api/retry.js';
import { type Day, lastEndedDay } from '../day.js';
import { messageOf } from '../errors.js';
import { Texts } from '../warehouse/texts.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { DayFailures } from './failures.js';
import { confirmDay, readStoredDay, recordFailedDay, storeDay, type StoreOutcome } from './ledger.js';
import { readUnfinishedDays, ResumableViews } from './pages.js';
import { type DayState, isSettled, type PlannedDay, requestsFor } from './plan.js';
import { walkDay } from './walk.js';

/** A day that could not be read. */
interface FailedDay {
  readonly day: Day;
  readonly outcome: 'failed';
  readonly error: unknown;
}

/** The outcome of one day. */
export type DayResult =
  | {
      readonly day: Day;
      readonly outcome: StoreOutcome;
      readonly state: Exclude<DayState, 'failed'>;
      readonly rows: number;
    }
  | FailedDay;

/** What a load did. `stopped` is why it ended before its last day; the days not reached are due next time. */
export interface LoadOutcome {
  readonly results: readonly DayResult[];
  readonly stopped?: unknown;
}

/** The error that stopped a load comes first, before the failures of single days. */
export function errorsOfLoad({ results, stopped }: LoadOutcome): unknown[] {
  const ofDays = results.flatMap((result) => (result.outcome === 'failed' ? [result.error] : []));
  return stopped === undefined ? ofDays : [stopped, ...ofDays];
}

/**
 * While days are being read, others have their requests reserved or wait to be committed. Together,
 * these others have about this many requests, so that hundreds of short days share a commit, and
 * long ones do not fill the memory.
 */
const REQUESTS_BESIDE = 400;
const FEWEST_DAYS_BESIDE = 16;

/** More paths are not kept between days, because visitors can request any number of made-up ones. */
const MOST_PATHS = 200_000;

export interface LoadTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views' | 'lease'>;
  readonly project: string;
  readonly settleDays: number;
  /** Days read at the same time. */
  readonly concurrency: number;
  /** Limits the days that several projects read at once; by default, a limit for this project only. */
  readonly inTurn?: LimitFunction | undefined;
  readonly now: () => Date;
  readonly signal?: AbortSignal | undefined;
  readonly onDay?: ((result: DayResult) => void) | undefined;
}

/**
 * Loads days in order. Each is stored, or recorded as failed, separately: one that fails keeps its
 * stored data, and the others continue. A failure that would affect every other day too (a refused
 * key, a server that is down, an interruption) stops the load, and days in progress are dropped.
 * When the budget is used up, no further day gets requests; days that already have theirs are
 * read, unless one of them needs more than it got.
 */
export async function loadDays(task: LoadTask, days: readonly PlannedDay[]): Promise<LoadOutcome> {
  const { warehouse, project, client, concurrency } = task;
  const inTurn = task.inTurn ?? pLimit(concurrency);
  const results: DayResult[] = [];
  const stopping = new AbortController();
  const signal = task.signal ? AbortSignal.any([task.signal, stopping.signal]) : stopping.signal;
  // Every request listens to it, some until shortly after they have ended; Node.js would warn about more than ten.
  setMaxListeners(0, signal);
  const failures = new DayFailures(task, days, signal);
  let paused: PausedError | undefined;
  /** Whether a day could not continue, so that no waiting day can either. */
  let isHalted = false;
  let newestRead: number | undefined;
  let paths = new Texts();

  // A used-up budget only keeps further days from beginning; any other failure also ends those in progress.
  const stop = (error: unknown): void => {
    if (error instanceof PausedError) paused ??= error;
    else stopping.abort(error);
  };
  const unfinished = await readUnfinishedDays(warehouse, project);
  const load = async (planned: PlannedDay): Promise<void> => {
    if (signal.aborted || paused !== undefined) return;
    const pagesKept = unfinished.get(planned.day) ?? 0;
    const requests = Math.max(1, expectedRequests(planned, newestRead) - pagesKept);
    const lease = await client.lease(requests, planned.priority, signal);
    try {
      if (paths.size > MOST_PATHS) paths = new Texts();
      // The last days use the connections of days that are done.
      const atOnce = () => Math.max(1, Math.floor(concurrency / inTurn.activeCount));
      const means = { lease, isUnfinished: pagesKept > 0, paths, atOnce, failures, signal, stop };
      const read = await inTurn(async () => {
        if (isHalted) return undefined;
        return attemptDay(task, planned, means).catch((error: unknown) => {
          isHalted = true;
          stop(error);
          return undefined;
        });
      });
      if (read === undefined) return;
      if ('store' in read) newestRead = requestsFor(read.rows);
      const result = 'store' in read ? await read.store() : read;
      results.push(result);
      task.onDay?.(result);
    } finally {
      await lease.end();
    }
  };

  // While days wait for a commit, others are read.
  const beside = Math.max(FEWEST_DAYS_BESIDE, Math.floor(REQUESTS_BESIDE / (days[0]?.requests ?? 1)));
  const begun = { concurrency: concurrency + beside };
  await warehouse.withOneThread(() => pMap(days, (planned) => load(planned).catch(stop), begun));
  if (signal.aborted) return { results, stopped: signal.reason };
  return paused === undefined ? { results } : { results, stopped: paused };
}

/** The context for reading a day. */
interface Means {
  readonly lease: Lease;
  /** Whether an earlier export kept pages of the day. */
  readonly isUnfinished: boolean;
  readonly paths: Texts;
  /** How many pages may be requested at the same time. */
  readonly atOnce: () => number;
  readonly failures: DayFailures;
  readonly signal: AbortSignal;
  /** Stops the load: every other day would fail as well. */
  readonly stop: (error: unknown) => void;
}

/** A day that was never read is probably as long as its neighbor, which was read just before. */
const expectedRequests = ({ due, requests }: PlannedDay, ofNeighbor: number | undefined): number =>
  due === 'missing' ? (ofNeighbor ?? requests) : requests;

/**
 * Reads a day that has ended, or records why it could not be read. Throws failures that would affect
 * every other day too.
 */
async function attemptDay(
  task: LoadTask,
  planned: PlannedDay,
  means: Means,
): Promise<ReadDay | FailedDay | undefined> {
  const { lease, failures, signal, stop } = means;
  try {
    signal.throwIfAborted();
    const read = await readDay(task, planned, means);
    failures.endWith(planned.day);
    return read;
  } catch (error) {
    // Once the export stops, a pending request ends with the reason of the stop: the failure of another day.
    if (signal.aborted || !(await failures.concernsOnly(planned.day, error, lease))) throw error;
    const { project, now } = task;
    await recordFailedDay(task.warehouse, { project, day: planned.day, now: now() }, messageOf(error));
    await failures.concernAllDays(planned.day, lease).then((areAll) => {
      if (areAll) stop(error);
    }, stop);
    return { day: planned.day, outcome: 'failed', error };
  }
}

/** A day whose pages were read, and how to store it. */
interface ReadDay {
  readonly rows: number;
  readonly store: () => Promise<DayResult>;
}

async function readDay(
  task: LoadTask,
  { day, due, isKnown }: PlannedDay,
  { lease, isUnfinished, paths, atOnce, signal }: Means,
): Promise<ReadDay | undefined> {
  const { warehouse, client, project, now } = task;
  const hasEnded = () => day <= lastEndedDay(now());
  const settled = () => isSettled(day, now(), task.settleDays);
  if (!hasEnded()) return undefined;
  const stored = due === 'provisional' ? await readStoredDay(warehouse, { project, day }) : undefined;
  const views = await ResumableViews.open({ warehouse, project, day }, client, lease, isUnfinished);
  const { onPaused } = views;
  const options = { isSettled: settled, stored, paths, atOnce, onPaused, signal };
  const walked = await walkDay(views, day, options).finally(() => views.end(isUnfinished));
  signal.throwIfAborted();
  // The response may have shown that the platform's clock is behind.
  if (!hasEnded()) return undefined;
  const at = { project, day, now: now() };
  const { doubt, rows } = walked === 'unchanged' ? { doubt: undefined, rows: stored?.rows ?? [] } : walked;
  const state = doubt !== undefined ? 'inconsistent' : settled() ? 'final' : 'provisional';
  const store = async (): Promise<DayResult> => {
    const outcome = await (walked === 'unchanged'
      ? confirmDay(warehouse, at, state)
      : storeDay(warehouse, at, walked, state, isKnown));
    return { day, outcome, state, rows: rows.length };
  };
  return { rows: rows.length, store };
}
