import pRetry from 'p-retry';
import { setTimeout as delay } from 'node:timers/promises';
import { TryLaterError } from './errors/try-later-error.js';

/** How often and how patiently a request that only reads is sent again. */
export interface RetryPolicy {
  readonly retries: number;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

export const DEFAULT_RETRIES: RetryPolicy = { retries: 4, minDelayMs: 500, maxDelayMs: 30_000 };

/** Told before each new attempt. */
export type OnRetry = (error: TryLaterError, retriesLeft: number) => void;

/**
 * The one place where retrying is decided. Only a `TryLaterError` is retried: with growing, randomised delays, and not
 * before the `Retry-After` of the server. One that asks for longer than `maxDelayMs` is handed on, so that the caller
 * can let go of what it holds.
 */
export function retrying<Result>(
  attempt: () => Promise<Result>,
  policy: RetryPolicy,
  signal: AbortSignal | undefined,
  onRetry: OnRetry,
): Promise<Result> {
  return pRetry(attempt, {
    retries: policy.retries,
    factor: 2,
    minTimeout: policy.minDelayMs,
    maxTimeout: policy.maxDelayMs,
    randomize: true,
    maxRetryTime: Infinity,
    unref: false,
    signal,
    shouldConsumeRetry: () => true,
    shouldRetry: ({ error }) =>
      error instanceof TryLaterError && (error.retryAfterMs ?? 0) <= policy.maxDelayMs,
    onFailedAttempt: async ({ error, retriesLeft }) => {
      if (!(error instanceof TryLaterError) || retriesLeft === 0) return;
      const waitMs = error.retryAfterMs ?? 0;
      if (waitMs > policy.maxDelayMs) return;
      onRetry(error, retriesLeft);
      // Cut short by an abort, it ends with the abort's reason, as everything else does.
      await delay(waitMs, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
    },
  });
}
