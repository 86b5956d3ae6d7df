import { addMilliseconds } from 'date-fns';
import pRetry from 'p-retry';
import { isLasting } from '../network.js';
import { sleepFor } from '../sleep.js';
import { PausedError, SERVER_PAUSE, TryLaterError, type TryLaterReason } from './errors.js';

/** How often and how long a read request is retried. */
export interface RetryPolicy {
  readonly retries: number;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

export const DEFAULT_RETRIES: RetryPolicy = { retries: 4, minDelayMs: 500, maxDelayMs: 30_000 };

/** Called before each new attempt. */
export type OnRetry = (error: Error & { readonly reason?: TryLaterReason }, retriesLeft: number) => void;

/**
 * The only place that decides whether a request to the platform is sent again, for those that only read. Only a
 * `TryLaterError` and damaged JSON are retried, with growing, randomized delays. After a rate limit, the pace delays every
 * request. Any other `Retry-After` is waited for here; if it is longer than `maxDelayMs`, the error is thrown, so that
 * the caller can release its resources.
 */
export async function retrying<Result>(
  attempt: () => Promise<Result>,
  policy: RetryPolicy,
  pace: Pace,
  signal: AbortSignal | undefined,
  onRetry: OnRetry,
): Promise<Result> {
  const waitOf = (error: Error) =>
    error instanceof TryLaterError && error.reason !== 'rate-limited' ? (error.retryAfterMs ?? 0) : 0;
  const isRetried = (error: Error) =>
    (error instanceof TryLaterError || error.cause instanceof SyntaxError) &&
    !isLasting(error.cause) &&
    waitOf(error) <= policy.maxDelayMs;
  return pRetry(attempt, {
    retries: policy.retries,
    factor: 2,
    minTimeout: policy.minDelayMs,
    maxTimeout: policy.maxDelayMs,
    randomize: true,
    signal,
    shouldRetry: ({ error }) => isRetried(error),
    onFailedAttempt: async ({ error, retriesLeft }) => {
      if (error instanceof TryLaterError && error.reason === 'rate-limited')
        await pace.refused(error.retryAfterMs);
      if (retriesLeft === 0 || !isRetried(error)) return;
      onRetry(error, retriesLeft);
      await sleepFor(waitOf(error), signal);
    },
  });
}

/**
 * What a request is for: `urgent` ones keep the latest days right, `backfill` ones fill in the past
 * and leave room for the others. A `trial` shows whether the platform answers again after a refusal.
 */
export type Priority = 'urgent' | 'backfill' | 'trial';

/** Requests that belong together, such as those of a day. */
export interface Lease {
  /** Resolves when the next of them may be sent; throws when that would take too long, or its signal aborts. */
  readonly next: () => Promise<void>;
  /** Returns the requests that were not sent. */
  readonly end: () => Promise<void>;
  /** Called when the platform has answered a trial. */
  readonly answered?: () => Promise<void>;
}

/** Decides when requests may be sent. One pace is shared by all that use the same key. */
export interface Pace {
  /**
   * Resolves when that many requests may be sent, one after another; throws as `Lease.next` does. Projects that wait
   * take turns.
   */
  lease(requests: number, priority: Priority, signal?: AbortSignal, project?: string): Promise<Lease>;
  /** The server answered 429, with or without a wait: nothing is sent before that is over. */
  refused(retryAfterMs: number | undefined): Promise<void>;
}

/** A pace without an hourly limit. After a refusal it waits as long as the server requests, up to `maxWaitMs`. */
export function pauseWhenRefused(now: () => Date, maxWaitMs: number): Pace {
  let pausedUntil = new Date(0);
  const pauseOver = async (signal: AbortSignal | undefined) => {
    const waitMs = pausedUntil.getTime() - now().getTime();
    if (waitMs > maxWaitMs) throw new PausedError(SERVER_PAUSE, pausedUntil);
    if (waitMs > 0) await sleepFor(waitMs, signal);
  };
  return {
    lease: (_requests, _priority, signal) =>
      Promise.resolve({ next: () => pauseOver(signal), end: () => Promise.resolve() }),
    refused: (retryAfterMs = 0) => {
      pausedUntil = addMilliseconds(now(), retryAfterMs);
      return Promise.resolve();
    },
  };
}
