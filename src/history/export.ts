import { setMaxListeners } from 'node:events';
import pMap from 'p-map';
import type { Client } from '../api/client.js';
import { ContractError } from '../api/errors/contract-error.js';
import { EndlessWalkError } from '../api/errors/endless-walk-error.js';
import { TryLaterError } from '../api/errors/try-later-error.js';
import { type Day, type DayRange } from '../day.js';
import { messageOf } from '../errors.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { readDayStates, recordFailedDay, storeDay, type StoreOutcome } from './ledger.js';
import { type DayState, type ExportPlan, isSettled, planExport } from './plan.js';
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

/** What an export of one project did. `stopped` is why it ended before its last day; the days not reached are due next time. */
export interface ExportOutcome {
  readonly plan: ExportPlan;
  readonly results: readonly DayResult[];
  readonly stopped?: unknown;
}

export interface ExportTask {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views'>;
  readonly project: string;
  readonly range: DayRange;
  readonly settleDays: number;
  /** Days fetched at the same time. */
  readonly concurrency: number;
  readonly now: () => Date;
  readonly signal?: AbortSignal;
  readonly onPlan?: (plan: ExportPlan) => void;
  readonly onDay?: (result: DayResult) => void;
}

/**
 * Loads the days of a range that are due. Each day is stored, or recorded as failed, by itself: one that fails leaves
 * what was stored of it, and the others go on. A fault that every other day would meet as well (a refused key, a rate
 * limit, a server that is down, an interruption) stops the export; days under way are finished or dropped whole.
 */
export async function exportDays(task: ExportTask): Promise<ExportOutcome> {
  const plan = planExport(await readDayStates(task.warehouse, task.project), task.range);
  task.onPlan?.(plan);
  const results: DayResult[] = [];
  const stop = new AbortController();
  const signal = task.signal ? AbortSignal.any([task.signal, stop.signal]) : stop.signal;
  // Every request listens to it, some until shortly after they have ended; Node would warn of more than ten.
  setMaxListeners(0, signal);
  let failuresInARow = 0;

  const visit = async (day: Day): Promise<void> => {
    if (signal.aborted) return;
    try {
      const result = await attemptDay(task, day, signal);
      failuresInARow = result.outcome === 'failed' ? failuresInARow + 1 : 0;
      if (result.outcome === 'failed' && failuresInARow >= MAX_FAILURES_IN_A_ROW) stop.abort(result.error);
      results.push(result);
      task.onDay?.(result);
    } catch (error) {
      stop.abort(error);
    }
  };

  await pMap(plan.days, visit, { concurrency: task.concurrency });
  return signal.aborted ? { plan, results, stopped: signal.reason } : { plan, results };
}

/** Loads a day, or records why it could not be loaded. Throws what every other day would meet as well. */
async function attemptDay(task: ExportTask, day: Day, signal: AbortSignal): Promise<DayResult> {
  try {
    return await loadDay(task, day, signal);
  } catch (error) {
    // Once the export stops, a request under way ends with the reason of the stop: the fault of another day.
    if (signal.aborted || !isOfThisDay(error)) throw error;
    const at = { project: task.project, day, now: task.now() };
    await recordFailedDay(task.warehouse, at, messageOf(error));
    return { day, outcome: 'failed', error };
  }
}

async function loadDay(task: ExportTask, day: Day, signal: AbortSignal): Promise<DayResult> {
  const settled = isSettled(day, task.now(), task.settleDays);
  const walked = await walkDay(task.client, day, settled, signal);
  signal.throwIfAborted();
  const state = stateOf(walked, settled);
  const at = { project: task.project, day, now: task.now() };
  const outcome = await storeDay(task.warehouse, at, walked, state);
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
