import { setMaxListeners } from 'node:events';
import pMap from 'p-map';
import type { Client } from '../api/client.js';
import { ContractError } from '../api/errors/contract-error.js';
import { EndlessWalkError } from '../api/errors/endless-walk-error.js';
import { TryLaterError } from '../api/errors/try-later-error.js';
import type { Day } from '../day.js';
import { messageOf } from '../errors.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { confirmDay, readStoredDay, recordFailedDay, storeDay, type StoreOutcome } from './ledger.js';
import { type DayState, isSettled, type PlannedDay } from './plan.js';
import { walkDay, type WalkedDay } from './walk.js';

/** Days that fail one after another, with none loaded between them, before the server is taken to be down. */
const MAX_FAILURES_IN_A_ROW = 5;

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

export interface LoadTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views'>;
  readonly project: string;
  readonly settleDays: number;
  /** Days fetched at the same time. */
  readonly concurrency: number;
  readonly now: () => Date;
  readonly signal?: AbortSignal | undefined;
  readonly onDay?: ((result: DayResult) => void) | undefined;
}

/**
 * Loads days in their order. Each is stored, or recorded as failed, by itself: one that fails leaves what was stored of
 * it, and the others go on. A fault that every other day would meet as well (a refused key, a spent budget, a server
 * that is down, an interruption) stops the load; days under way are finished or dropped whole.
 */
export async function loadDays(task: LoadTask, days: readonly PlannedDay[]): Promise<LoadOutcome> {
  const results: DayResult[] = [];
  const stop = new AbortController();
  const signal = task.signal ? AbortSignal.any([task.signal, stop.signal]) : stop.signal;
  // Every request under way listens to it: more than Node takes for a leak, as many as `concurrency` asks for.
  setMaxListeners(0, signal);
  let failuresInARow = 0;

  const visit = async (planned: PlannedDay): Promise<void> => {
    if (signal.aborted) return;
    try {
      const result = await attemptDay(task, planned, signal);
      failuresInARow = result.outcome === 'failed' ? failuresInARow + 1 : 0;
      if (result.outcome === 'failed' && failuresInARow >= MAX_FAILURES_IN_A_ROW) stop.abort(result.error);
      results.push(result);
      task.onDay?.(result);
    } catch (error) {
      stop.abort(error);
    }
  };

  await pMap(days, visit, { concurrency: task.concurrency });
  return signal.aborted ? { results, stopped: signal.reason } : { results };
}

/** Loads a day, or records why it could not be loaded. Throws what every other day would meet as well. */
async function attemptDay(task: LoadTask, planned: PlannedDay, signal: AbortSignal): Promise<DayResult> {
  try {
    return await loadDay(task, planned, signal);
  } catch (error) {
    // Once the load stops, a request under way ends with the reason of the stop: the fault of another day.
    if (signal.aborted || !isOfThisDay(error)) throw error;
    const { project, now } = task;
    await recordFailedDay(task.warehouse, { project, day: planned.day, now: now() }, messageOf(error));
    return { day: planned.day, outcome: 'failed', error };
  }
}

async function loadDay(task: LoadTask, planned: PlannedDay, signal: AbortSignal): Promise<DayResult> {
  const { warehouse, client, project, now } = task;
  const { day, due, priority } = planned;
  const settled = isSettled(day, now(), task.settleDays);
  const stored = due === 'provisional' ? await readStoredDay(warehouse, { project, day }) : undefined;
  const walked = await walkDay(client, day, { isSettled: settled, stored, priority, signal });
  signal.throwIfAborted();
  const at = { project, day, now: now() };
  if (walked === 'unchanged') {
    const state = settled ? 'final' : 'provisional';
    await confirmDay(warehouse, at, state);
    return { day, outcome: 'unchanged', state, rows: stored?.rows.length ?? 0 };
  }
  const state = stateOf(walked, settled);
  const outcome = await storeDay(warehouse, at, walked, state);
  return { day, outcome, state, rows: walked.rows.length };
}

const stateOf = ({ verdict }: WalkedDay, settled: boolean): Exclude<DayState, 'failed'> =>
  verdict === 'inconsistent' ? 'inconsistent' : settled ? 'final' : 'provisional';

/**
 * Faults that may be of one day alone: what the server sent for it, or a request that kept failing. After any other
 * (a refusal, a rate limit, no connection, a full disk) the day was not really read, so it stays as it was.
 */
const isOfThisDay = (error: unknown): boolean =>
  error instanceof ContractError ||
  error instanceof EndlessWalkError ||
  (error instanceof TryLaterError && (error.reason === 'server-fault' || error.reason === 'connection-lost'));
