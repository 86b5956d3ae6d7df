import { ApiError } from './api-error.js';

/** A request that changes something was sent, and its reply never came or cannot be read: it may have been carried out. */
export class UnknownOutcomeError extends ApiError {
  readonly exitCode = 1;
}
