import { addMilliseconds, subMilliseconds } from 'date-fns';
import { z } from 'zod';
import { LIMITS } from '../api/schema.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';

const USES_SINCE = readSql(import.meta.url, 'statements/uses-since.sql');
const PAUSED_UNTIL = readSql(import.meta.url, 'statements/paused-until.sql');
const RECORD_PAUSE = readSql(import.meta.url, 'statements/record-pause.sql');

/**
 * An hour, and the longest a request may take: the platform may count a use that much later than its intent was
 * committed here, so a bare hour could still be one too many there.
 */
const USES_WINDOW_MS = 61 * 60_000;

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
  const since = subMilliseconds(now, USES_WINDOW_MS);
  const uses = await reader.query(USES_SINCE, useRow, { project, since });
  const [pause] = await reader.query(PAUSED_UNTIL, pauseRow, { project });
  const free = freeAt(
    uses.map(({ changed_at }) => changed_at),
    LIMITS.usesPerHour,
  );
  const turns: Turn[] = [];
  if (free !== undefined)
    turns.push({ at: free, why: `${LIMITS.usesPerHour} prompts were sent within an hour` });
  if (pause?.paused_until) turns.push({ at: pause.paused_until, why: 'the platform asked to wait' });
  return turns
    .filter(({ at }) => at > now)
    .sort((one, other) => other.at.getTime() - one.at.getTime())
    .at(0);
}

/** When a further use fits, given the uses of the window, oldest first; undefined when it does at once. */
export function freeAt(uses: readonly Date[], limit: number): Date | undefined {
  const leaves = uses.at(-limit);
  return uses.length < limit || leaves === undefined ? undefined : addMilliseconds(leaves, USES_WINDOW_MS);
}

/** Remembers that the platform is not to be sent prompts for a while, whichever process would. */
export const pause = (
  warehouse: Warehouse,
  project: string,
  { now, until, cause }: { readonly now: Date; readonly until: Date; readonly cause: string },
): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(RECORD_PAUSE, { project, now, until, cause }));
