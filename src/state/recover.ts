import { z } from 'zod';
import { readSql } from '../columns.js';
import { recordChange } from './jobs.js';
import type { Worker } from './lock.js';
import type { State } from './state.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const UNKNOWN_JOBS = statement('unknown-jobs');
const UNKNOWN_MESSAGES = statement('unknown-messages');
const UNKNOWN_EMAILS = statement('unknown-emails');
const END_KILLED = statement('end-killed');
const PRUNE_RUNS = statement('prune-runs');

const INTERRUPTED = 'the process ended before the reply was recorded';

/** How many jobs, messages and emails were found to be of unknown outcome. */
export interface Recovered {
  readonly jobs: number;
  readonly messages: number;
  readonly emails: number;
}

/**
 * Records what became of the work of a process that was killed: what it was sending is of unknown outcome, and its steps
 * were interrupted. Called by each new worker, before anything else.
 */
export const recover = (state: State, worker: Worker, now: Date): Promise<Recovered> =>
  state.transaction(() => {
    worker.expectCurrent();
    const values = { now, note: INTERRUPTED };
    const jobs = state.all(UNKNOWN_JOBS, z.object({ job: z.int() }), values);
    const messages = state.all(UNKNOWN_MESSAGES, z.object({ job: z.int(), message: z.int() }), values);
    for (const change of [...jobs, ...messages])
      recordChange(state, {
        message: null,
        ...change,
        now,
        from: 'sending',
        to: 'unknown',
        cause: INTERRUPTED,
      });
    const emails = state.run(UNKNOWN_EMAILS, values);
    state.run(END_KILLED, { now });
    state.run(PRUNE_RUNS);
    return { jobs: jobs.length, messages: messages.length, emails };
  });
