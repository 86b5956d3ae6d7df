import { z } from 'zod';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import { type Job, promptColumns, readJobs, referenceOf } from './job.js';
import {
  changeJob,
  insert,
  type JobChange,
  type JobWriter,
  type PromptChange,
  recordTransition,
  refuse,
  within,
} from './ledger.js';
import { MESSAGE_STATES, type MessageEvent, nextMessageState } from './lifecycle.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const MESSAGES_OF_PROJECT = statement('messages-of-project');
const PLAN_MESSAGE = statement('plan-message');
const UPDATE_MESSAGE = statement('update-message');
const TRANSITIONS_OF_JOB = statement('transitions-of-job');

const messageRow = z
  .object({
    ...promptColumns,
    job: z.int(),
    state: z.enum(MESSAGE_STATES),
    origin: z.enum(['typed', 'askWhenNoChange']),
    job_planned_at: timestampColumn,
  })
  .transform(({ job_planned_at, ...row }) => {
    const jobReference = referenceOf(row.project, row.path, job_planned_at);
    return { ...row, jobReference, reference: referenceOf(jobReference, row.prompt, row.planned_at) };
  });
/** A follow-up message; `job` is the number of its job. */
export type JobMessage = z.infer<typeof messageRow>;

/** Every message to the jobs of a project (null for all projects), oldest first. */
export const readMessages = (reader: Reader, project: string | null): Promise<JobMessage[]> =>
  reader.query(MESSAGES_OF_PROJECT, messageRow, { project });

export const readMessagesOf = async (
  reader: Reader,
  projects: readonly { readonly id: string }[],
): Promise<JobMessage[]> => (await Promise.all(projects.map(({ id }) => readMessages(reader, id)))).flat();

/** The message to a job that was not sent yet, or whose reply was lost; at most one is. */
export const openMessage = (messages: readonly JobMessage[]): JobMessage | undefined =>
  messages.findLast(({ state }) => state === 'planned' || state === 'unconfirmed');

/** Records the intent to send a message to a job; nothing is sent. Returns the number of the message. */
export const planMessage = (
  writer: JobWriter,
  { id: job }: Pick<Job, 'id'>,
  { now, ...message }: Pick<JobMessage, 'origin' | 'prompt'> & { readonly now: Date },
  cause = 'typed',
): Promise<number> =>
  within(writer, async (transaction) => {
    const id = await insert(transaction, PLAN_MESSAGE, { job, now, ...message });
    await recordTransition(transaction, { job, message: id, now, from: null, to: 'planned', cause });
    return id;
  });

/** Throws when the event cannot happen in the message's state. */
async function changeMessage(
  transaction: Transaction,
  message: JobMessage,
  { event, now, cause, note = null }: PromptChange<MessageEvent>,
): Promise<JobMessage> {
  const { id, job, state: from } = message;
  const state = nextMessageState(from, event) ?? refuse(`message ${id}`, from, event);
  const changed = { ...message, state, submitted_at: event === 'submit' ? now : message.submitted_at, note };
  await storeMessage(transaction, changed);
  await recordTransition(transaction, { job, message: id, now, from, to: state, cause });
  return changed;
}

/** Stores the mutable columns of a message, whatever its previous state. */
export const storeMessage = (transaction: Transaction, message: JobMessage): Promise<void> =>
  transaction.execute(UPDATE_MESSAGE, message);

/** What is sent to the platform: a job to create, or a message to a job. */
export interface Prompt {
  readonly job: Job;
  readonly message?: JobMessage | undefined;
}

/** The jobs of a project (null for all projects), or the messages to them, oldest first. */
export async function readPrompts(
  reader: Reader,
  kind: 'job' | 'message',
  project: string | null,
): Promise<Prompt[]> {
  const jobs = await readJobs(reader, project);
  if (kind === 'job') return jobs.map((job) => ({ job }));
  const byId = new Map(jobs.map((job) => [job.id, job]));
  return (await readMessages(reader, project)).flatMap((message) => {
    const job = byId.get(message.job);
    return job === undefined ? [] : { job, message };
  });
}

/** Applies an event to a job or message and stores it. A message that arrived reopens its job. */
export const changePrompt = (
  writer: JobWriter,
  { job, message }: Prompt,
  change: JobChange<MessageEvent>,
): Promise<Prompt> =>
  within(writer, async (transaction) => {
    if (message === undefined) return { job: await changeJob(transaction, job, change) };
    const changed = await changeMessage(transaction, message, change);
    if (changed.state !== 'sent') return { job, message: changed };
    return { job: await reopenJob(transaction, job, message, change), message: changed };
  });

/** After a message was sent, its job is polled until it ends again. */
export const reopenJob = (
  transaction: Transaction,
  job: Job,
  { id }: Pick<JobMessage, 'id'>,
  change: Omit<JobChange, 'event' | 'cause'>,
): Promise<Job> =>
  changeJob(transaction, job, { ...change, event: 'followed-up', cause: `message ${id} was sent` });

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
