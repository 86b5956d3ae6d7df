import { addMilliseconds } from 'date-fns';
import { ReadershipError } from '../errors.js';
import { moment } from '../format/days.js';
import type { Turn } from './rate.js';

/** Prompts wait for their turn: the hourly limit is used up, or the platform asked to wait. */
export class TurnError extends ReadershipError {
  readonly exitCode = 75;

  constructor(
    waiting: number,
    readonly turn: Turn,
  ) {
    super(
      `${waiting === 1 ? '1 prompt waits' : `${waiting} prompts wait`}: ${turn.why}. The next may go on ${moment(addMilliseconds(turn.at, 59_999))}. ` +
        `They are kept: run the same command then, or leave it to the schedule.`,
    );
  }
}
