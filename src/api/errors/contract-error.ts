import { ApiError } from './api-error.js';

/** The server answered with something that the documented interface does not allow. */
export class ContractError extends ApiError {
  readonly exitCode = 1;
}
