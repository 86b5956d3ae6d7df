import { ReadershipError } from '../../errors.js';

/** What was asked of the server: named in every message. The URL holds no secret; the key travels in a header. */
export interface Operation {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly url: string;
}

/** Something went wrong between us and the server. */
export abstract class ApiError extends ReadershipError {
  constructor(
    readonly operation: Operation,
    what: string,
    options?: ErrorOptions,
  ) {
    super(`Could not ${operation.name}: ${what} [${operation.method} ${operation.url}]`, options);
  }
}
