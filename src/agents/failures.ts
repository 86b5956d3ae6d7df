import { RefusedError, TryLaterError } from '../api/errors.js';

/** Refusals that are about the account, not the prompt: mended, the same prompt can be sent. */
const ACCOUNT_STATUSES = new Set([401, 402, 403]);

/** A platform that answers 429 without a Retry-After is asked again after this. */
const DEFAULT_PAUSE_MS = 10 * 60_000;

/** What a failed POST says about its outcome. */
export type FailedOutcome = 'not-done' | 'refused' | 'outcome-unknown';

/**
 * The one table of what a failure says about the outcome of a POST. Only what is known to come before the server acted
 * may be sent again; anything ambiguous, our own faults included, is unknown and never sent again by itself.
 */
export function outcomeOf(error: unknown): FailedOutcome {
  if (error instanceof TryLaterError && error.isKnownNotDone) return 'not-done';
  if (error instanceof RefusedError) return ACCOUNT_STATUSES.has(error.status) ? 'not-done' : 'refused';
  return 'outcome-unknown';
}

/** How long the platform wants no further prompt; undefined when it did not say so. */
export function pauseAfter(error: unknown): number | undefined {
  if (!(error instanceof TryLaterError)) return undefined;
  return error.reason === 'rate-limited' ? (error.retryAfterMs ?? DEFAULT_PAUSE_MS) : error.retryAfterMs;
}
