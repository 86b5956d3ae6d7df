import { z } from 'zod';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type Job, recordTransition, referenceOf } from './ledger.js';
import { MESSAGE_STATES, type MessageEvent, nextMessageState } from './lifecycle.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const MESSAGES_OF_PROJECT = statement('messages-of-project');
const PLAN_MESSAGE = statement('plan-message');
const UPDATE_MESSAGE = statement('update-message');

const messageColumns = z.object({
  id: z.int(),
  job: z.int(),
  state: z.enum(MESSAGE_STATES),
  origin: z.enum(['typed', 'askWhenNoChange']),
  prompt: z.string(),
  planned_at: timestampColumn,
  submitted_at: timestampColumn.nullable(),
  note: z.string().nullable(),
  project: z.string(),
  path: z.string(),
  job_planned_at: timestampColumn,
});
const messageRow = messageColumns.transform(({ job_planned_at, ...row }) => {
  const jobReference = referenceOf(row.project, row.path, job_planned_at);
  return { ...row, jobReference, reference: referenceOf(jobReference, row.prompt, row.planned_at) };
});
/** `id` is the message's number in Readership, `job` that of its job. */
export type Message = z.infer<typeof messageRow>;

/** Every message to the jobs of a project (null for all projects), oldest first. */
export const readMessages = (reader: Reader, project: string | null): Promise<Message[]> =>
  reader.query(MESSAGES_OF_PROJECT, messageRow, { project });

export const readMessagesOf = async (
  reader: Reader,
  projects: readonly { readonly id: string }[],
): Promise<Message[]> => (await Promise.all(projects.map(({ id }) => readMessages(reader, id)))).flat();

/** Records the intent to send a message; nothing is sent. Returns the number of the message. */
export function planMessage(
  warehouse: Warehouse,
  job: Job,
  message: Pick<Message, 'origin' | 'prompt'> & { readonly now: Date },
): Promise<number> {
  return warehouse.transaction((transaction) => planMessageWithin(transaction, job.id, message, 'typed'));
}

/** As `planMessage`, within a larger transaction. */
export async function planMessageWithin(
  transaction: Transaction,
  job: number,
  { origin, prompt, now }: Pick<Message, 'origin' | 'prompt'> & { readonly now: Date },
  cause: string,
): Promise<number> {
  const values = { job, origin, prompt, now };
  const [row] = await transaction.query(PLAN_MESSAGE, z.object({ id: z.int() }), values);
  if (row === undefined) throw new Error('the message was not stored');
  const change = { job, message: row.id, now, from: null, to: 'planned', cause } as const;
  await recordTransition(transaction, change);
  return row.id;
}

/** What happened to a message. */
export interface MessageChange {
  readonly event: MessageEvent;
  readonly now: Date;
  /** A phrase for the list of transitions. */
  readonly cause: string;
  readonly note?: string;
}

/** Applies an event to a message. Throws when the event cannot happen in the message's state. */
export async function changeMessageWithin(
  transaction: Transaction,
  message: Message,
  { event, now, cause, note }: MessageChange,
): Promise<Message> {
  const { id, job, state: from } = message;
  const state = nextMessageState(from, event);
  if (state === undefined) throw new Error(`message ${id} is ${from}: “${event}” cannot happen to it now`);
  const submitted_at = event === 'submit' ? now : message.submitted_at;
  const changed = { ...message, state, submitted_at, note: note ?? null };
  await storeMessage(transaction, changed);
  await recordTransition(transaction, { job, message: id, now, from, to: state, cause });
  return changed;
}

/** Stores the mutable columns of a message, whatever its previous state. */
export const storeMessage = (
  transaction: Transaction,
  { id, state, submitted_at, note }: Pick<Message, 'id' | 'state' | 'submitted_at' | 'note'>,
): Promise<void> => transaction.execute(UPDATE_MESSAGE, { id, state, submitted_at, note });
