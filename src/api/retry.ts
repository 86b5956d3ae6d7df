import pRetry from 'p-retry';
import { isLasting } from '../network.js';
import { sleepFor } from '../sleep.js';
import { TryLaterError, type TryLaterReason } from './errors.js';

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
 * `TryLaterError` and damaged JSON are retried, with growing, randomized delays. After a 429, the pace delays every
 * request, and up to `mostRefusals` refusals of this one do not count as retries. Any other `Retry-After` is waited for
 * here; if it is longer than `maxDelayMs`, the error is thrown, so that the caller can release its resources.
 */
export async function retrying<Result>(
  attempt: () => Promise<Result>,
  policy: RetryPolicy,
  mostRefusals: number,
  signal: AbortSignal | undefined,
  onRetry: OnRetry,
): Promise<Result> {
  const waitOf = (error: Error) =>
    error instanceof TryLaterError && error.reason !== 'rate-limited' ? (error.retryAfterMs ?? 0) : 0;
  const isRetried = (error: Error) =>
    (error instanceof TryLaterError || error.cause instanceof SyntaxError) &&
    !isLasting(error.cause) &&
    waitOf(error) <= policy.maxDelayMs;
  const isRefused = (error: Error) => error instanceof TryLaterError && error.reason === 'rate-limited';
  return pRetry(attempt, {
    retries: policy.retries,
    factor: 2,
    minTimeout: policy.minDelayMs,
    maxTimeout: policy.maxDelayMs,
    randomize: true,
    signal,
    shouldConsumeRetry: ({ error, attemptNumber, retriesConsumed }) =>
      !isRefused(error) || attemptNumber - retriesConsumed > mostRefusals,
    shouldRetry: ({ error }) => isRetried(error),
    onFailedAttempt: async ({ error, retriesLeft }) => {
      if (retriesLeft === 0 || !isRetried(error)) return;
      onRetry(error, retriesLeft);
      await sleepFor(waitOf(error), signal);
    },
  });
}
