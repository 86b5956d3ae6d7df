import { createHash } from 'node:crypto';
import type { AgentJob } from '../api/schema.js';
import {
  addJob,
  type Job,
  type JobState,
  type NewJob,
  readJob,
  readJobs,
  recordChange,
  storeJob,
} from '../state/jobs.js';
import type { State } from '../state/state.js';
import {
  isPolled,
  isRemote,
  type JobEvent,
  type MessageEvent,
  nextMessageState,
  nextState,
  OPEN_STATES,
  type RemoteState,
} from './lifecycle.js';
import {
  addMessage,
  type JobMessage,
  readMessages,
  readMessagesTo,
  storeMessage,
} from '../state/messages.js';

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
interface PromptChange<Event> {
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

function cannotHappen(what: string, state: string, event: string): never {
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

/** The message to a job that was not sent yet, or whose reply was lost; at most one is. */
export const openMessage = (messages: readonly JobMessage[]): JobMessage | undefined =>
  messages.findLast(({ state }) => state === 'planned' || state === 'unknown');

/** A message before it has a number. */
type NewMessage = Pick<JobMessage, 'origin' | 'prompt'> & {
  readonly now: Date;
  /** The form that asks for it, in the web app: it may be submitted again. */
  readonly form?: string | undefined;
};

/**
 * Records the intent to send a message to a job, in a transaction; nothing is sent. Returns the number of the message: of
 * the one that the same form asked for before, if it did.
 */
export function planMessage(
  state: State,
  { id: job, reference: jobReference }: Pick<Job, 'id' | 'reference'>,
  { now, origin, prompt, form }: NewMessage,
): number {
  const reference = referenceOf(jobReference, prompt, form ?? now);
  const known = readMessagesTo(state, job).find((message) => message.reference === reference);
  if (known !== undefined) return known.id;
  const id = addMessage(state, { reference, job, origin, prompt, planned_at: now });
  recordChange(state, { job, message: id, now, from: null, to: 'planned', cause: origin });
  return id;
}

/** Throws when the event cannot happen in the message's state. */
function changeMessage(
  state: State,
  message: JobMessage,
  { event, now, cause, note = null, attempt }: PromptChange<MessageEvent>,
): JobMessage {
  const { id, job, state: from } = message;
  const to = nextMessageState(from, event) ?? cannotHappen(`message ${id}`, from, event);
  const changed = {
    ...message,
    state: to,
    attempt: attempt ?? message.attempt,
    submitted_at: event === 'submit' ? now : message.submitted_at,
    note,
  };
  storeMessage(state, changed);
  recordChange(state, { job, message: id, now, from, to, cause });
  return changed;
}

/** What is sent to the platform: a job to create, or a message to a job. */
export interface Prompt {
  readonly job: Job;
  readonly message?: JobMessage | undefined;
}

/** The jobs of a project (null for all projects), or the messages to them, oldest first. */
export function readPrompts(state: State, kind: 'job' | 'message', project: string | null): Prompt[] {
  const jobs = readJobs(state, project);
  if (kind === 'job') return jobs.map((job) => ({ job }));
  const byId = new Map(jobs.map((job) => [job.id, job]));
  return readMessages(state, project).flatMap((message) => {
    const job = byId.get(message.job);
    return job === undefined ? [] : { job, message };
  });
}

/** A prompt as it is now. */
export function currentPrompt(state: State, { job, message }: Prompt): Prompt {
  const current = readJob(state, job.id);
  if (current === undefined) throw new Error(`there is no job ${job.id}`);
  if (message === undefined) return { job: current };
  return { job: current, message: readMessagesTo(state, job.id).find(({ id }) => id === message.id) };
}

/**
 * Applies an event to a job or message, in a transaction that has read it, and stores it. A message that arrived reopens
 * its job.
 */
export function changePrompt(
  state: State,
  { job, message }: Prompt,
  change: JobChange<MessageEvent>,
): Prompt {
  if (message === undefined) return { job: changeJob(state, job, change) };
  const changed = changeMessage(state, message, change);
  if (changed.state !== 'sent') return { job, message: changed };
  const { now, remote, nextPollAt } = change;
  const reopened = changeJob(state, job, {
    event: 'followed-up',
    now,
    cause: `message ${message.id} was sent`,
    remote,
    ...(nextPollAt && { nextPollAt }),
  });
  return { job: reopened, message: changed };
}
