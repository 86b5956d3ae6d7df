import { ApiError, type Operation } from './api-error.js';

/**
 * Why it may work later. `not-taken` is a 503 that names a time to come back: the server's own word that it did not
 * begin. A 503 without one may come from a proxy that lost the server half-way, so it is a `server-fault`.
 */
export type TryLaterReason =
  'rate-limited' | 'not-taken' | 'server-fault' | 'unreachable' | 'connection-lost';

const KNOWN_NOT_DONE: ReadonlySet<TryLaterReason> = new Set(['rate-limited', 'not-taken', 'unreachable']);

/** The server or the network is not able to answer now: 429, 5xx, no connection, a lost one. */
export class TryLaterError extends ApiError {
  readonly exitCode = 75;

  constructor(
    operation: Operation,
    readonly reason: TryLaterReason,
    what: string,
    /** How long the server asked us to wait; undefined when it did not say. */
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(operation, what, options);
  }

  /** Whether the server cannot have acted on the request. */
  get isKnownNotDone(): boolean {
    return KNOWN_NOT_DONE.has(this.reason);
  }
}
