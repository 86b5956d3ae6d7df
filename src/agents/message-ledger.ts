import { z } from 'zod';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Transaction, Warehouse } from '../warehouse/warehouse.js';
import type { Job } from './ledger.js';
import { MESSAGE_STATES, type MessageEvent, nextMessageState } from './lifecycle.js';
import { recordTransition } from './transitions.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const MESSAGES_OF_PROJECT = statement('messages-of-project');
const PLAN_MESSAGE = statement('plan-message');
const UPDATE_MESSAGE = statement('update-message');

const messageRow = z.object({
  id: z.int(),
  job: z.int(),
  state: z.enum(MESSAGE_STATES),
  origin: z.enum(['typed', 'askWhenNoChange']),
  prompt: z.string(),
  planned_at: timestampColumn,
  submitted_at: timestampColumn.nullable(),
  note: z.string().nullable(),
});
/** A follow-up message as the ledger has it. `id` is its number, `job` that of its job here. */
export type Message = z.infer<typeof messageRow>;

/** Every message to the jobs of a project, oldest first. */
export const readMessages = (reader: Reader, project: string): Promise<Message[]> =>
  reader.query(MESSAGES_OF_PROJECT, messageRow, { project });

/** Records the intent to send a message; nothing is sent. Returns the number of the message. */
export function planMessage(
  warehouse: Warehouse,
  job: Job,
  message: Pick<Message, 'origin' | 'prompt'> & { readonly now: Date },
): Promise<number> {
  const { origin, prompt, now } = message;
  return warehouse.transaction(async (transaction) => {
    const values = { job: job.id, origin, prompt, now };
    const [row] = await transaction.query(PLAN_MESSAGE, z.object({ id: z.int() }), values);
    if (row === undefined) throw new Error('the message was not stored');
    const cause = origin === 'typed' ? 'typed' : 'completed without a pull request: asked why';
    const change = { job: job.id, message: row.id, now, from: null, to: 'planned', cause } as const;
    await recordTransition(transaction, change);
    return row.id;
  });
}

/** What happened to a message. */
export interface MessageChange {
  readonly event: MessageEvent;
  readonly now: Date;
  /** In words, for the list of transitions. */
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
  await transaction.execute(UPDATE_MESSAGE, { id, state, submitted_at, note: changed.note });
  await recordTransition(transaction, { job, message: id, now, from, to: state, cause });
  return changed;
}
