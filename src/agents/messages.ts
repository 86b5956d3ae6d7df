import { type Job, readJob, readJobs, recordChange } from '../state/jobs.js';
import {
  addMessage,
  type JobMessage,
  readMessages,
  readMessagesTo,
  storeMessage,
} from '../state/messages.js';
import type { State } from '../state/state.js';
import { cannotHappen, changeJob, type JobChange, type PromptChange, referenceOf } from './job.js';
import { type MessageEvent, nextMessageState } from './lifecycle.js';

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
