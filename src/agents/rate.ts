import { subHours } from 'date-fns';
import { z } from 'zod';
import { LIMITS } from '../api/schema.js';
import { hourState, nextFreeAt } from '../budget/hour.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';

const USES_SINCE = readSql(import.meta.url, 'statements/uses-since.sql');
const PAUSED_UNTIL = readSql(import.meta.url, 'statements/paused-until.sql');
const RECORD_PAUSE = readSql(import.meta.url, 'statements/record-pause.sql');

const useRow = z.object({ changed_at: timestampColumn });
const pauseRow = z.object({ paused_until: timestampColumn.nullable() });

/** When the next prompt may be sent, and what it waits for, in words. */
export interface Turn {
  readonly at: Date;
  readonly why: string;
}

/**
 * The turn of a project's next prompt; undefined when that is now. No ledger of its own is needed: each intent is
 * committed before its prompt is sent, so the intents of the last hour are the uses, those of killed processes
 * included.
 */
export async function nextTurn(reader: Reader, project: string, now: Date): Promise<Turn | undefined> {
  const uses = await reader.query(USES_SINCE, useRow, { project, since: subHours(now, 2) });
  const [pause] = await reader.query(PAUSED_UNTIL, pauseRow, { project });
  const rows = [
    ...uses.map(({ changed_at: used_at }) => ({ used_at, requests: 1, paused_until: null })),
    { used_at: now, requests: 0, paused_until: pause?.paused_until ?? null },
  ];
  const hour = hourState(rows, now);
  const at = nextFreeAt(hour, LIMITS.usesPerHour, 1, now);
  if (at <= now) return undefined;
  const isPaused = at.getTime() === hour.pausedUntil?.getTime();
  const limit = `the limit of ${LIMITS.usesPerHour} prompts an hour is reached`;
  return { at, why: isPaused ? 'the platform asked for a pause' : limit };
}

/** Remembers that the platform is not to be sent prompts for a while, whichever process would. */
export const pause = (
  warehouse: Warehouse,
  project: string,
  { now, until, cause }: { readonly now: Date; readonly until: Date; readonly cause: string },
): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(RECORD_PAUSE, { project, now, until, cause }));
