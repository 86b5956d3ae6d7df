import { z } from 'zod';
import type { AgentJob } from '../api/schema.js';
import { type Parameters, readSql } from '../warehouse/query.js';
import { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { Job } from './job.js';
import {
  isPolled,
  type JobEvent,
  type JobState,
  type MessageState,
  nextState,
  OPEN_STATES,
} from './lifecycle.js';
import type { Evidence } from './reasons.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const PLAN_JOB = statement('plan-job');
const UPDATE_JOB = statement('update-job');
const RECORD_TRANSITION = statement('record-transition');

/** Work on the jobs of a project. */
export interface JobsTask {
  readonly warehouse: Warehouse;
  readonly project: string;
  /** What follows commands about its jobs. */
  readonly now: () => Date;
  readonly signal?: AbortSignal;
}

/** Where changes are stored: in a given transaction, or in one of their own. */
export type JobWriter = Warehouse | Transaction;

export const within = <Result>(writer: JobWriter, work: (transaction: Transaction) => Promise<Result>) =>
  writer instanceof Transaction ? work(writer) : writer.transaction(work);

/** A job before it has a number. */
interface PlannedJob {
  readonly project: string;
  readonly page: { readonly path: string; readonly reason: string; readonly evidence: Evidence };
  readonly prompt: string;
  readonly now: Date;
}

/** Records the intent to create a job for a page; nothing is sent. Returns the number of the job. */
export const planJob = (
  writer: JobWriter,
  { project, page: { path, reason, evidence }, prompt, now }: PlannedJob,
  cause = 'flagged',
): Promise<number> =>
  within(writer, async (transaction) => {
    const weeks = JSON.stringify(evidence.weeks);
    const values = { project, now, prompt, path, reason, ...evidence, weeks };
    const job = await insert(transaction, PLAN_JOB, values);
    await recordTransition(transaction, { job, now, from: null, to: 'planned', cause });
    return job;
  });

/** Inserts a job or message. Returns its number. */
export async function insert(transaction: Transaction, sql: string, values: Parameters) {
  const [row] = await transaction.query(sql, z.object({ id: z.int() }), values);
  if (row === undefined) throw new Error('the prompt was not stored');
  return row.id;
}

/** What happened to a job or a message. */
export interface PromptChange<Event> {
  readonly event: Event;
  readonly now: Date;
  /** A phrase for the list of transitions. */
  readonly cause: string;
  readonly note?: string | null;
}
/** What is known of a job on the platform. */
export type Remote = { readonly [Field in keyof AgentJob]?: AgentJob[Field] | undefined };
export interface JobChange<Event = JobEvent> extends PromptChange<Event> {
  readonly remote?: Remote | undefined;
  /** When to poll the job if it is active; by default, at once. */
  readonly nextPollAt?: Date;
}

/** Applies an event to a job and stores it. Throws when the event cannot happen in the job's state. */
export const changeJob = (writer: JobWriter, job: Job, change: JobChange): Promise<Job> =>
  within(writer, async (transaction) => {
    const changed = applyChange(job, change);
    await storeJob(transaction, changed, change.remote);
    const { now, cause } = change;
    if (changed.state !== job.state || change.event === 'found-sent')
      await recordTransition(transaction, { job: job.id, now, from: job.state, to: changed.state, cause });
    return changed;
  });

export function refuse(what: string, state: string, event: string): never {
  throw new Error(`${what} is ${state}: “${event}” cannot happen to it now`);
}

/** The job after a change. Pure. */
function applyChange(job: Job, change: JobChange): Job {
  const { event, now, remote } = change;
  const state = nextState(job.state, event, remote?.status) ?? refuse(`job ${job.id}`, job.state, event);
  return {
    ...jobIn(job, state, change),
    submitted_at: event === 'submit' ? now : job.submitted_at,
    polls: event === 'polled' ? job.polls + 1 : event === 'followed-up' ? 0 : job.polls,
  };
}

/** The job in another state. Throws if it would have to be polled under an unknown id on the platform. */
export function jobIn(
  job: Job,
  state: JobState,
  { now, remote, nextPollAt = now, note = null }: Omit<JobChange, 'event' | 'cause'>,
): Job {
  // The platform's id of a job never changes, so another one in a poll or reply is ignored.
  const remote_id = job.remote_id ?? remote?.id ?? null;
  if (state === 'active' && remote_id === null)
    throw new Error(`job ${job.id} cannot be active without its id on the platform`);
  const pr_link = remote?.prLink ?? job.pr_link;
  const ended_at = OPEN_STATES.has(state) ? null : (job.ended_at ?? now);
  return {
    ...job,
    state,
    remote_id,
    remote_status: remote?.status ?? job.remote_status,
    pr_link,
    next_poll_at: isPolled(state, pr_link, ended_at, now) ? nextPollAt : null,
    ended_at,
    note,
  };
}

/** Stores the mutable columns of a job, whatever its previous state. */
export const storeJob = (
  transaction: Transaction,
  job: Job,
  { model = null, source }: Remote = {},
): Promise<void> =>
  transaction.execute(UPDATE_JOB, {
    ...job,
    // The statement does not change them, and a list cannot be a parameter.
    weeks: null,
    model,
    repository: source?.repository ?? null,
    ref: source?.ref ?? null,
  });

/** A state change to record, of a job, or of one of its messages if `message` is set. */
interface StateChange {
  readonly job: number;
  readonly message?: number | undefined;
  readonly now: Date;
  readonly from: JobState | MessageState | null;
  readonly to: JobState | MessageState;
  /** A phrase for the list of transitions. */
  readonly cause: string;
}

/** Records a state change, in the transaction that makes it. */
export const recordTransition = (transaction: Transaction, change: StateChange): Promise<void> =>
  transaction.execute(RECORD_TRANSITION, { ...change, message: change.message ?? null });
