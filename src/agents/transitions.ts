import { z } from 'zod';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/warehouse.js';
import type { JobState, MessageState } from './lifecycle.js';

const RECORD_TRANSITION = readSql(import.meta.url, 'statements/record-transition.sql');
const TRANSITIONS_OF_JOB = readSql(import.meta.url, 'statements/transitions-of-job.sql');

const transitionRow = z.object({
  message: z.int().nullable(),
  changed_at: timestampColumn,
  from_state: z.string().nullable(),
  to_state: z.string(),
  cause: z.string(),
});
/** A change of state of a job, or of the message of that number. */
export type Transition = z.infer<typeof transitionRow>;

/** How a job and its messages got to their states, oldest first. */
export const readTransitions = (reader: Reader, job: number): Promise<Transition[]> =>
  reader.query(TRANSITIONS_OF_JOB, transitionRow, { job });

interface Change<State> {
  readonly job: number;
  readonly now: Date;
  readonly from: State | null;
  readonly to: State;
  /** In words. */
  readonly cause: string;
}

/** Records a change of state, in the transaction that makes it. */
export const recordTransition = (
  transaction: Transaction,
  change: Change<JobState> | (Change<MessageState> & { readonly message: number }),
): Promise<void> =>
  transaction.execute(RECORD_TRANSITION, {
    ...{ job: change.job, now: change.now, cause: change.cause },
    message: 'message' in change ? change.message : null,
    from_state: change.from,
    to_state: change.to,
  });
