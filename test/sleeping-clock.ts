import { addMilliseconds } from 'date-fns';
import { NOW } from './sandbox/open-sandbox.js';

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
