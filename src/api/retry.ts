import pRetry from 'p-retry';
import { TryLaterError } from './errors/try-later-error.js';
import { sleepFor } from '../sleep.js';
import type { Pace } from './pace.js';

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
 * The one place where retrying is decided. Only a `TryLaterError` is retried, with growing, randomised delays. A rate
 * limit is told to the pace, which then holds every request back; any other `Retry-After` is waited for here, unless
 * it is longer than `maxDelayMs`: then the caller is told, so that it can let go of what it holds.
 */
export function retrying<Result>(
  attempt: () => Promise<Result>,
  policy: RetryPolicy,
  pace: Pace,
  signal: AbortSignal | undefined,
  onRetry: OnRetry,
): Promise<Result> {
  const waitOf = ({ reason, retryAfterMs = 0 }: TryLaterError) =>
    reason === 'rate-limited' ? 0 : retryAfterMs;
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
    shouldRetry: ({ error }) => error instanceof TryLaterError && waitOf(error) <= policy.maxDelayMs,
    onFailedAttempt: async ({ error, retriesLeft }) => {
      if (!(error instanceof TryLaterError)) return;
      if (error.reason === 'rate-limited') await pace.refused(error.retryAfterMs);
      if (retriesLeft === 0 || waitOf(error) > policy.maxDelayMs) return;
      onRetry(error, retriesLeft);
      await sleepFor(waitOf(error), signal);
    },
  });
}
