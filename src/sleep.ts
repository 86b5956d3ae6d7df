import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** Waits, in milliseconds; rejects with the signal's reason when it aborts. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleepFor: Sleep = async (ms, signal) => {
  // Node.js would reject with its own error.
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
};

/** Waits until the signal aborts. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** How much later than it should be a timer shows that the process was suspended, and how long it then waits for an answer. */
const SUSPENDED_MS = 1_000;

/**
 * A signal that aborts with the given one, or after `ms`. If the process was suspended meanwhile, the answer may be in the
 * socket, so there is time to read it. In Node.js 20, an `AbortSignal.timeout`
 * inside `AbortSignal.any` is lost to garbage collection and never aborts.
 */
export function timeLimit(ms: number, signal?: AbortSignal): AbortSignal {
  const late = new AbortController();
  const end = () => {
    late.abort(new Error('it took too long'));
  };
  const lateMs = performance.now() + ms + SUSPENDED_MS;
  setTimeout(() => {
    if (performance.now() < lateMs) end();
    else setTimeout(end, SUSPENDED_MS).unref();
  }, ms).unref();
  return signal ? AbortSignal.any([signal, late.signal]) : late.signal;
}

/** How long a pending request may take after an interruption, so that its reply is not lost needlessly. */
const GRACE_MS = 3_000;

const later = new WeakMap<AbortSignal, AbortSignal>();

/** A signal that aborts a few seconds after the given one, which gets one listener however often this is called. */
export function withGrace(signal: AbortSignal): AbortSignal {
  const known = later.get(signal);
  if (known !== undefined) return known;
  const late = new AbortController();
  const abortLate = () => {
    setTimeout(() => late.abort(signal.reason), GRACE_MS).unref();
  };
  if (signal.aborted) abortLate();
  else signal.addEventListener('abort', abortLate, { once: true });
  later.set(signal, late.signal);
  return late.signal;
}
