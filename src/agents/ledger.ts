import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AgentJob } from '../api/schema.js';
import type { Day } from '../day.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import {
  isRemote,
  type JobEvent,
  type JobState,
  LOCAL_STATES,
  type MessageState,
  nextState,
  OPEN_STATES,
  REMOTE_STATES,
  type RemoteState,
} from './lifecycle.js';
import { type Evidence, evidenceColumns } from './select.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const JOBS_OF_PROJECT = statement('jobs-of-project');
const PLAN_JOB = statement('plan-job');
const UPDATE_JOB = statement('update-job');
const MARK_MERGED = statement('mark-merged');

/**
 * Identifies a job or message in the effects journal, the prompt and the pull request. It is derived from values that
 * never change, so every copy of the database agrees on it.
 */
export const referenceOf = (...parts: readonly (string | Date)[]): string =>
  createHash('sha256')
    .update(parts.map((part) => (part instanceof Date ? part.getTime() : part)).join('\n'))
    .digest('hex')
    .slice(0, 12);

const jobColumns = z.object({
  id: z.int(),
  project: z.string(),
  path: z.string(),
  reason: z.string(),
  prompt: z.string(),
  planned_at: timestampColumn,
  submitted_at: timestampColumn.nullable(),
  remote_status: z.string().nullable(),
  pr_link: z.string().nullable(),
  polls: z.int(),
  next_poll_at: timestampColumn.nullable(),
  ended_at: timestampColumn.nullable(),
  note: z.string().nullable(),
  merged_on: dayColumn.nullable(),
  /** When its pull request was closed without being merged; null if it was not, or was not looked up. */
  closed_on: dayColumn.nullable(),
  pull_request_problem: z.string().nullable(),
  ...evidenceColumns,
});
const localJob = jobColumns.extend({ state: z.enum(LOCAL_STATES), remote_id: z.string().nullable() });
const remoteJob = jobColumns.extend({ state: z.enum(REMOTE_STATES), remote_id: z.string() });
const jobRow = z.discriminatedUnion('state', [localJob, remoteJob]).transform((row) => ({
  ...row,
  reference: referenceOf(row.project, row.path, row.planned_at),
}));
/** `id` is the job's number in Readership, `remote_id` its id on the platform. */
export type Job = z.infer<typeof jobRow>;
/** A job known to exist on the platform. */
export type RemoteJob = Extract<Job, { state: RemoteState }>;

export const isRemoteJob = (job: Job): job is RemoteJob => isRemote(job.state);

/** The job in another state. Throws if that state requires an unknown id on the platform. */
export function jobInState(job: Job, state: JobState, remote_id: string | null): Job {
  if (!isRemote(state)) return { ...job, state, remote_id };
  if (remote_id === null) throw new Error(`job ${job.id} cannot be ${state} without its id on the platform`);
  return { ...job, state, remote_id };
}

/** Every job of a project, oldest first. */
export const readJobs = (reader: Reader, project: string): Promise<Job[]> =>
  reader.query(JOBS_OF_PROJECT, jobRow, { project });

export const readJobsOf = async (
  reader: Reader,
  projects: readonly { readonly id: string }[],
): Promise<Job[]> => (await Promise.all(projects.map(({ id }) => readJobs(reader, id)))).flat();

/** A job before it has a number. */
interface PlannedJob {
  readonly project: string;
  readonly page: { readonly path: string; readonly reason: string; readonly evidence: Evidence };
  readonly prompt: string;
  readonly now: Date;
}

/** Records the intent to create a job for a page; nothing is sent. */
export const planJob = (warehouse: Warehouse, plan: PlannedJob): Promise<number> =>
  warehouse.transaction((transaction) => planJobWithin(transaction, plan, 'flagged'));

/** As `planJob`, within a larger transaction. Returns the number of the job. */
export async function planJobWithin(
  transaction: Transaction,
  { project, page, prompt, now }: PlannedJob,
  cause: string,
): Promise<number> {
  const { path, reason, evidence } = page;
  const values = { project, now, prompt, path, reason, ...evidence, weeks: JSON.stringify(evidence.weeks) };
  const [row] = await transaction.query(PLAN_JOB, z.object({ id: z.int() }), values);
  if (row === undefined) throw new Error('the job was not stored');
  await recordTransition(transaction, { job: row.id, now, from: null, to: 'planned', cause });
  return row.id;
}

/** What happened to a job, and what the platform said about it. */
interface JobChange {
  readonly event: JobEvent;
  readonly now: Date;
  /** A phrase for the list of transitions. */
  readonly cause: string;
  readonly remote?: AgentJob;
  readonly nextPollAt?: Date;
  readonly note?: string;
}

/** Applies an event to a job and commits it. Throws when the event cannot happen in the job's state. */
export const changeJob = (warehouse: Warehouse, job: Job, change: JobChange): Promise<Job> =>
  warehouse.transaction((transaction) => changeJobWithin(transaction, job, change));

/** As `changeJob`, within a larger transaction. */
export async function changeJobWithin(transaction: Transaction, job: Job, change: JobChange): Promise<Job> {
  const changed = applyChange(job, change);
  const { remote, now, cause } = change;
  await storeJob(transaction, changed, remote);
  if (changed.state !== job.state)
    await recordTransition(transaction, { job: job.id, now, from: job.state, to: changed.state, cause });
  return changed;
}

/** Stores the mutable columns of a job, whatever its previous state. */
export const storeJob = (transaction: Transaction, job: Job, remote?: AgentJob): Promise<void> =>
  transaction.execute(UPDATE_JOB, {
    ...{ id: job.id, state: job.state, submitted_at: job.submitted_at, polls: job.polls },
    ...{ remote_id: job.remote_id, remote_status: job.remote_status, pr_link: job.pr_link },
    ...{ next_poll_at: job.next_poll_at, ended_at: job.ended_at, note: job.note },
    model: remote?.model ?? null,
    repository: remote?.source?.repository ?? null,
    ref: remote?.source?.ref ?? null,
  });

/** Records the day on which a job's pull request was merged; its effect is measured from then on. */
export const markMerged = (warehouse: Warehouse, job: Job, mergedOn: Day): Promise<void> =>
  warehouse.transaction((transaction) =>
    transaction.execute(MARK_MERGED, { id: job.id, merged_on: mergedOn }),
  );

/** The job after a change. Pure. */
function applyChange(job: Job, { event, now, remote, nextPollAt, note }: JobChange): Job {
  const state = nextState(job.state, event);
  if (state === undefined)
    throw new Error(`job ${job.id} is ${job.state}: “${event.kind}” cannot happen to it now`);
  return {
    ...jobInState(job, state, remote?.id ?? job.remote_id),
    submitted_at: event.kind === 'submit' ? now : job.submitted_at,
    remote_status: remote?.status ?? job.remote_status,
    pr_link: remote?.prLink ?? job.pr_link,
    polls: event.kind === 'polled' ? job.polls + 1 : event.kind === 'followed-up' ? 0 : job.polls,
    next_poll_at: state === 'active' ? (nextPollAt ?? null) : null,
    ended_at: OPEN_STATES.has(state) ? null : (job.ended_at ?? now),
    note: note ?? null,
  };
}

const RECORD_TRANSITION = readSql(import.meta.url, 'statements/record-transition.sql');
const TRANSITIONS_OF_JOB = readSql(import.meta.url, 'statements/transitions-of-job.sql');

const transitionRow = z.object({
  message: z.int().nullable(),
  changed_at: timestampColumn,
  from_state: z.string().nullable(),
  to_state: z.string(),
  cause: z.string(),
});
/** A state change of a job, or of one of its messages if `message` is set. */
export type Transition = z.infer<typeof transitionRow>;

/** The state changes of a job and its messages, oldest first. */
export const readTransitions = (reader: Reader, job: number): Promise<Transition[]> =>
  reader.query(TRANSITIONS_OF_JOB, transitionRow, { job });

interface Change<State> {
  readonly job: number;
  readonly now: Date;
  readonly from: State | null;
  readonly to: State;
  /** A phrase for the list of transitions. */
  readonly cause: string;
}

/** Records a state change, in the transaction that makes it. */
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
