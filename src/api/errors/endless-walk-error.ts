import { ReadershipError } from '../../errors.js';

/** Pages of a walk that do not end, or end in the middle: the server does not keep the interface's pagination rules. */
export class EndlessWalkError extends ReadershipError {
  readonly exitCode = 1;

  constructor(what: string) {
    super(`${what}. Nothing of this day was stored; the same command tries it again.`);
  }
}
