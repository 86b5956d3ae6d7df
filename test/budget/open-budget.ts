import { addMilliseconds } from 'date-fns';
import { RequestBudget, type BudgetOptions } from '../../src/budget/budget.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

/** A clock whose sleepers move it on. */
export interface SleepingClock {
  readonly now: () => Date;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly advance: (ms: number) => void;
}

export function sleepingClock(start = NOW): SleepingClock {
  let now = start;
  const advance = (ms: number) => {
    now = addMilliseconds(now, ms);
  };
  const sleep = (ms: number, signal?: AbortSignal) => {
    signal?.throwIfAborted();
    advance(ms);
    return Promise.resolve();
  };
  return { now: () => now, sleep, advance };
}

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** A budget of 100 requests an hour that waits as long as it must. */
export const budgetOn = (
  warehouse: Warehouse,
  clock: SleepingClock,
  options: Partial<BudgetOptions> = {},
): RequestBudget =>
  new RequestBudget({
    warehouse,
    bucket: 'READERSHIP_API_KEY',
    limit: 100,
    reserve: 0,
    maxWaitMs: DAY_MS,
    now: clock.now,
    sleep: clock.sleep,
    ...options,
  });

/** The most of these moments in any rolling hour. */
export function busiestHour(moments: readonly Date[]): number {
  const times = moments.map((moment) => moment.getTime());
  return Math.max(
    0,
    ...times.map((end) => times.filter((time) => time <= end && end - time < 60 * MINUTE_MS).length),
  );
}
