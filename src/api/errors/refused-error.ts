import { ApiError, type Operation } from './api-error.js';

/** The server said no, and will say no again until somebody changes something: any status but 2xx, 429 and 5xx. */
export class RefusedError extends ApiError {
  readonly exitCode = 1;

  constructor(
    operation: Operation,
    readonly status: number,
    what: string,
  ) {
    super(operation, what);
  }
}
