import { addHours, addMilliseconds, max, min, subHours } from 'date-fns';
import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import { addedId, promptColumns } from './jobs.js';
import type { State } from './state.js';

const SENT_PROMPTS = readSql(import.meta.url, 'statements/sent-prompts.sql');
const PROMPT_PAUSES = readSql(import.meta.url, 'statements/prompt-pauses.sql');
const RECORD_PAUSE = readSql(import.meta.url, 'statements/record-pause.sql');

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

/** When prompts of a project were sent in the last two hours, for jobs and messages together. */
export const readSentPrompts = (state: State, project: string, now: Date): Date[] =>
  state
    .all(SENT_PROMPTS, z.object({ sent_at: timestampColumn }), { project, since: subHours(now, 2) })
    .map(({ sent_at }) => sent_at);

const pauseRow = z.object({ paused_at: timestampColumn, paused_until: timestampColumn });

/**
 * Until when the platform wants no prompts of a project; undefined if it does not say. A pause lasts no longer than the
 * platform asked for, and one that a wrong clock dated in the future is ignored.
 */
export function readPromptPause(state: State, project: string, now: Date): Date | undefined {
  const pauses = state.all(PROMPT_PAUSES, pauseRow, { project, now, latest: addHours(now, 1) });
  const ends = pauses.map(({ paused_at, paused_until }) =>
    min([paused_until, addMilliseconds(now, paused_until.getTime() - paused_at.getTime())]),
  );
  return ends.length === 0 ? undefined : max(ends);
}

/** A pause that the platform requested. */
interface PromptPause {
  readonly project: string;
  readonly now: Date;
  readonly until: Date;
  readonly cause: string;
}

export const recordPromptPause = (state: State, pause: PromptPause): number =>
  state.run(RECORD_PAUSE, { ...pause });
