import { ApiError, type Operation } from './api-error.js';

/** The server said no, and will say no again until somebody changes something: 400, 401, 402, 403, 404. */
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
