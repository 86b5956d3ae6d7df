import { addMilliseconds } from 'date-fns';
import { ReadershipError } from '../errors.js';
import { moment } from '../format/days.js';
import type { Turn } from './rate.js';

/** Prompts of one kind; what sends those that wait differs. */
export type PromptKind = 'jobs' | 'messages';

const SENT_BY: Readonly<Record<PromptKind, string>> = {
  jobs: 'readership improve --apply sends what waits, and so does the schedule if improve.mode is apply',
  messages: 'readership jobs poll sends what waits, and so does the schedule',
};

/** Prompts wait for their turn: the hourly limit is used up, or the platform asked to wait. */
export class TurnError extends ReadershipError {
  readonly exitCode = 75;
  override readonly resumeAt: Date;

  constructor(waiting: number, turn: Turn, kind: PromptKind) {
    super(
      `${waiting === 1 ? '1 prompt waits' : `${waiting} prompts wait`}: ${turn.why}. The next may go on ${moment(addMilliseconds(turn.at, 59_999))}. ` +
        `Nothing is lost: from then on ${SENT_BY[kind]}.`,
    );
    this.resumeAt = turn.at;
  }
}
