import { nextMinute } from '../../format/days.js';
import { ReadershipError } from '../../errors.js';

/** The next request may be sent only at `resumeAt`, which is later than anybody here waits for. */
export class PausedError extends ReadershipError {
  readonly exitCode = 75;

  constructor(
    why: string,
    readonly resumeAt: Date,
  ) {
    super(`${why} The next request may be sent from ${nextMinute(resumeAt)} on.`);
  }
}
