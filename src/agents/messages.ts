import { z } from 'zod';
import type { AgentJob } from '../api/schema.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import {
  type Change,
  changeJob,
  insert,
  type Job,
  type Ledger,
  promptColumns,
  recordTransition,
  referenceOf,
  refuse,
  within,
} from './ledger.js';
import { MESSAGE_STATES, type MessageEvent, nextMessageState } from './lifecycle.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const MESSAGES_OF_PROJECT = statement('messages-of-project');
const PLAN_MESSAGE = statement('plan-message');
const UPDATE_MESSAGE = statement('update-message');

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
export type Message = z.infer<typeof messageRow>;

/** Every message to the jobs of a project (null for all projects), oldest first. */
export const readMessages = (reader: Reader, project: string | null): Promise<Message[]> =>
  reader.query(MESSAGES_OF_PROJECT, messageRow, { project });

export const readMessagesOf = async (
  reader: Reader,
  projects: readonly { readonly id: string }[],
): Promise<Message[]> => (await Promise.all(projects.map(({ id }) => readMessages(reader, id)))).flat();

/** Records the intent to send a message to a job; nothing is sent. Returns the number of the message. */
export const planMessage = (
  ledger: Ledger,
  { id: job }: Pick<Job, 'id'>,
  { now, ...message }: Pick<Message, 'origin' | 'prompt'> & { readonly now: Date },
  cause = 'typed',
): Promise<number> =>
  within(ledger, async (transaction) => {
    const id = await insert(transaction, PLAN_MESSAGE, { job, now, ...message });
    await recordTransition(transaction, { job, message: id, now, from: null, to: 'planned', cause });
    return id;
  });

/**
 * Applies an event to a message and stores it. Throws when the event cannot happen in the message's
 * state.
 */
export const changeMessage = (
  ledger: Ledger,
  message: Message,
  { event, now, cause, note }: Change<MessageEvent>,
): Promise<Message> =>
  within(ledger, async (transaction) => {
    const { id, job, state: from } = message;
    const state = nextMessageState(from, event) ?? refuse(`message ${id}`, from, event);
    const submitted_at = event === 'submit' ? now : message.submitted_at;
    const changed = { ...message, state, submitted_at, note: note ?? null };
    await storeMessage(transaction, changed);
    await recordTransition(transaction, { job, message: id, now, from, to: state, cause });
    return changed;
  });

/** Stores the mutable columns of a message, whatever its previous state. */
export const storeMessage = (
  transaction: Transaction,
  { id, state, submitted_at, note }: Pick<Message, 'id' | 'state' | 'submitted_at' | 'note'>,
): Promise<void> => transaction.execute(UPDATE_MESSAGE, { id, state, submitted_at, note });

/**
 * A message that arrived reopens its job in the same transaction, and the job is polled until it
 * ends again.
 */
export const settleAsSent = (
  warehouse: Warehouse,
  message: Message,
  job: Job,
  change: Change<'sent' | 'found-sent'> & { readonly nextPollAt: Date; readonly remote?: AgentJob },
): Promise<Job> =>
  warehouse.transaction(async (transaction) => {
    await changeMessage(transaction, message, change);
    const cause = `message ${message.id} was sent`;
    return changeJob(transaction, job, { ...change, event: 'followed-up', cause });
  });
