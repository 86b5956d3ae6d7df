import { createHash } from 'node:crypto';
import type { AgentJob } from '../api/schema.js';
import { addJob, type Job, type JobState, type NewJob, recordChange, storeJob } from '../state/jobs.js';
import type { State } from '../state/state.js';
import { isPolled, isRemote, type JobEvent, nextState, OPEN_STATES, type RemoteState } from './lifecycle.js';

/** Work on the jobs of a project. */
export interface JobsTask {
  readonly state: State;
  readonly project: string;
  readonly now: () => Date;
  readonly signal?: AbortSignal;
}

/** Identifies a job or message in the prompt and the pull request. It is derived from values that never change. */
export const referenceOf = (...parts: readonly (string | Date)[]): string =>
  createHash('sha256')
    .update(parts.map((part) => (part instanceof Date ? part.getTime() : part)).join('\n'))
    .digest('hex')
    .slice(0, 12);

/** A job known to exist on the platform. */
export type RemoteJob = Job & { readonly state: RemoteState; readonly remote_id: string };

/** A job whose reply was lost and whose pull request was found has an unknown id. */
export const isRemoteJob = (job: Job): job is RemoteJob => isRemote(job.state) && job.remote_id !== null;

/** What a job is now, to follow its name in a sentence. */
export function jobStateWords({ state }: Pick<Job, 'state'>): string {
  switch (state) {
    case 'unknown':
      return 'may or may not have been created';
    case 'sending':
      return 'is being sent';
    case 'refused':
      return 'was refused';
    case 'failed':
      return 'failed';
    case 'planned':
    case 'active':
    case 'completed':
    case 'archived':
      return `is ${state}`;
  }
}

/** Records the intent to create a job for a page, in a transaction; nothing is sent. Returns the number of the job. */
export function planJob(state: State, planned: NewJob): number {
  const job = addJob(state, planned);
  const cause = planned.is_approved ? 'approved' : 'flagged';
  recordChange(state, { job, message: null, now: planned.planned_at, from: null, to: 'planned', cause });
  return job;
}

/** What happened to a job or a message. */
export interface PromptChange<Event> {
  readonly event: Event;
  readonly now: Date;
  /** A phrase for the list of changes. */
  readonly cause: string;
  readonly note?: string | null;
  /** The number of the attempt that begins. */
  readonly attempt?: number;
}
/** What is known of a job on the platform. */
type Remote = { readonly [Field in keyof AgentJob]?: AgentJob[Field] | undefined };
export interface JobChange<Event = JobEvent> extends PromptChange<Event> {
  readonly remote?: Remote | undefined;
  /** When to poll the job if it is active; by default, at once. */
  readonly nextPollAt?: Date;
}

/**
 * Applies an event to a job, in a transaction that has read it, and stores it. Throws when the event cannot happen in the
 * job's state.
 */
export function changeJob(state: State, job: Job, change: JobChange): Job {
  const { now, cause, remote } = change;
  const changed = applyChange(job, change);
  storeJob(state, changed, {
    model: remote?.model ?? null,
    repository: remote?.source?.repository ?? null,
    ref: remote?.source?.ref ?? null,
  });
  if (changed.state !== job.state || change.event === 'found-sent')
    recordChange(state, { job: job.id, message: null, now, from: job.state, to: changed.state, cause });
  return changed;
}

export function cannotHappen(what: string, state: string, event: string): never {
  throw new Error(`${what} is ${state}: “${event}” cannot happen to it now`);
}

/** The job after a change. Pure. */
function applyChange(job: Job, change: JobChange): Job {
  const { event, now, remote, nextPollAt = now, note = null, attempt } = change;
  const state: JobState =
    nextState(job.state, event, remote?.status) ?? cannotHappen(`job ${job.id}`, job.state, event);
  const remote_id = remote?.id ?? job.remote_id;
  if (state === 'active' && remote_id === null)
    throw new Error(`job ${job.id} cannot be active without its id on the platform`);
  const pr_link = remote?.prLink ?? job.pr_link;
  const ended_at = OPEN_STATES.has(state) ? null : (job.ended_at ?? now);
  return {
    ...job,
    state,
    attempt: attempt ?? job.attempt,
    submitted_at: event === 'submit' ? now : job.submitted_at,
    remote_id,
    remote_status: remote?.status ?? job.remote_status,
    pr_link,
    polls: event === 'polled' ? job.polls + 1 : event === 'followed-up' ? 0 : job.polls,
    next_poll_at: isPolled(state, pr_link, ended_at, now) ? nextPollAt : null,
    ended_at,
    note,
  };
}
