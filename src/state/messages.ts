import { z } from 'zod';
import { readSql } from '../columns.js';
import { addedId, promptColumns } from './jobs.js';
import type { State } from './state.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const MESSAGES = statement('messages');
const ADD_MESSAGE = statement('add-message');
const UPDATE_MESSAGE = statement('update-message');

export const MESSAGE_STATES = ['planned', 'sending', 'unknown', 'refused', 'sent'] as const;
export type MessageState = (typeof MESSAGE_STATES)[number];

const messageRow = z.object({
  ...promptColumns,
  job: z.int(),
  state: z.enum(MESSAGE_STATES),
  origin: z.enum(['typed', 'askWhenNoChange']),
});
/** A follow-up message; `job` is the number of its job. */
export type JobMessage = z.infer<typeof messageRow>;

/** Every message to the jobs of a project (null for all projects), oldest first. */
export const readMessages = (state: State, project: string | null): JobMessage[] =>
  state.all(MESSAGES, messageRow, { project, job: null });

export const readMessagesOf = (state: State, projects: readonly { readonly id: string }[]): JobMessage[] =>
  projects.flatMap(({ id }) => readMessages(state, id));

/** The messages to a job, oldest first. */
export const readMessagesTo = (state: State, job: number): JobMessage[] =>
  state.all(MESSAGES, messageRow, { project: null, job });

/** A message before it has a number. */
type NewMessage = Pick<JobMessage, 'reference' | 'job' | 'origin' | 'prompt' | 'planned_at'>;

/** Stores a planned message. Returns its number. */
export const addMessage = (state: State, message: NewMessage): number => addedId(state, ADD_MESSAGE, message);

/** Stores the mutable columns of a message, whatever its previous state. */
export const storeMessage = (state: State, message: JobMessage): number => state.run(UPDATE_MESSAGE, message);
