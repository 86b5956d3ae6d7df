import { addMilliseconds } from 'date-fns';
import { PausedError } from '../../src/api/errors.js';
import type { Priority } from '../../src/api/retry.js';
import { RequestBudget, type BudgetOptions } from '../../src/budget/budget.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { liveWarehouse } from '../open-warehouse.js';
import { NOW } from '../sandbox/open-sandbox.js';

/** A clock that advances when something sleeps. */
export type SleepingClock = ReturnType<typeof sleepingClock>;

export function sleepingClock(start = NOW) {
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

export const BUCKET = 'key 0123456789abcdef';

/** A budget of 100 requests an hour that waits as long as it must. */
export const budgetOn = (warehouse: Warehouse, clock: SleepingClock, options: Partial<BudgetOptions> = {}) =>
  new RequestBudget({
    warehouse,
    bucket: BUCKET,
    limit: 100,
    reserve: () => Promise.resolve(0),
    maxWaitMs: DAY_MS,
    now: clock.now,
    sleep: clock.sleep,
    ...options,
  });

/** Such a budget of a new database, with a clock of its own. */
export async function openBudget(options: Partial<BudgetOptions> = {}) {
  const [clock, warehouse] = [sleepingClock(), await liveWarehouse()];
  return { clock, warehouse, budget: budgetOn(warehouse, clock, options) };
}

/** Takes one request, as a probe does. */
export async function takeOne(budget: RequestBudget, priority: Priority = 'urgent', signal?: AbortSignal) {
  const lease = await budget.lease(1, priority, signal);
  try {
    await lease.next();
  } finally {
    await lease.end();
  }
}

/** Takes as many requests as possible without waiting. */
export async function takeAll(budget: RequestBudget, priority: Priority = 'urgent'): Promise<number> {
  for (let taken = 0; ; taken++) {
    try {
      await takeOne(budget, priority);
    } catch (error) {
      if (error instanceof PausedError) return taken;
      throw error;
    }
  }
}

/** The maximum number of these moments in any rolling hour. */
export function busiestHour(moments: readonly Date[]): number {
  const times = moments.map((moment) => moment.getTime());
  return Math.max(
    0,
    ...times.map((end) => times.filter((time) => time <= end && end - time < 60 * MINUTE_MS).length),
  );
}
