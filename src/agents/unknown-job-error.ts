import type { RefusedError } from '../api/errors.js';
import { ReadershipError } from '../errors.js';

/** The platform says that there is no such job. Its word alone ends nothing: the fault may be its own, and pass. */
export class UnknownJobError extends ReadershipError {
  readonly exitCode = 1;

  constructor(job: number, cause: RefusedError) {
    super(
      `${cause.message} If job ${job} is gone on the platform for good, this ends it here: readership jobs resolve ${job} --gone`,
      { cause },
    );
  }
}
