import { addHours, addMilliseconds, max, min, subHours } from 'date-fns';
import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import type { State } from './state.js';

const SENT_PROMPTS = readSql(import.meta.url, 'statements/sent-prompts.sql');
const PROMPT_PAUSES = readSql(import.meta.url, 'statements/prompt-pauses.sql');
const RECORD_PAUSE = readSql(import.meta.url, 'statements/record-pause.sql');

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
