import { addHours, max } from 'date-fns';
import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import { inSequence, moment } from '../format/days.js';
import { thousands } from '../format/numbers.js';
import type { State } from '../state/state.js';
import type { Reader } from '../history/query.js';

const OF_HISTORY = readSql(import.meta.url, 'statements/dated-in-future.sql');
const OF_STATE = readSql(import.meta.url, '../state/statements/dated-in-future.sql');
const futureRow = z.object({ kind: z.string(), rows: z.int(), latest: timestampColumn });

/** Records of a kind that a wrong clock dated in the future, and the furthest of their times. They delay nothing for longer than their own delay. */
export type FutureRows = z.infer<typeof futureRow>;

/** Of the history: days and restatements. */
export const readFutureDays = (reader: Reader, now: Date): Promise<FutureRows[]> =>
  reader.query(OF_HISTORY, futureRow, { now });

/** Of the state. */
export const readFutureRecords = (state: State, now: Date): FutureRows[] =>
  state.all(OF_STATE, futureRow, { since: addHours(now, 1) });

/** What they are, and what that means. */
export function futureWords(found: readonly FutureRows[]): string {
  const kinds = inSequence(found.map(({ kind, rows }) => `${thousands(rows)} × ${kind}`));
  return `${kinds}, up to ${moment(max(found.map(({ latest }) => latest)))}, by a clock that was wrong; they delay nothing`;
}
