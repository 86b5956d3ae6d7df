import { setTimeout as delay } from 'node:timers/promises';

/** Waits, in milliseconds; rejects with the signal's reason when it aborts. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleepFor: Sleep = async (ms, signal) => {
  // Node would end it with an error of its own.
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
};
