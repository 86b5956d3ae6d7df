import type { DuckDBConnection } from '@duckdb/node-api';
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { AttachError, whileAttached } from './duckdb.js';
import { RESTORE } from '../storage.js';
import { logOf } from './live-file.js';
import { dayColumn, queryRows, readSql, timestampColumn } from './query.js';

const IS_BEHIND = readSql(import.meta.url, 'statements/is-behind.sql');
const LACKING = readSql(import.meta.url, 'statements/lacking.sql');

/** The live database is missing, or older than the history published from it. */
export class BehindError extends StorageError {}

/** Throws a `BehindError` if the live database is missing but the history published from it exists. */
export function refuseToForget(liveFile: string, historyFile: string): void {
  if (existsSync(liveFile) || !existsSync(historyFile)) return;
  throw new BehindError(
    `The live database ${liveFile} is missing, but the history published from it exists. A new database would not know ` +
      `about earlier days, jobs and emails, and would load everything again. Nothing was changed.\n` +
      `${RESTORE}\nOr, to start over, move ${historyFile} away, and ${logOf(liveFile)} if it exists.`,
  );
}

/**
 * Throws a `BehindError` when the live database on `connection` is an older state than the history
 * published from it, such as yesterday's copy, or a file whose log was deleted. Every publication
 * holds the run that published it, and that run was committed to the live database first, so a live
 * database without it has gone backwards.
 */
export async function refuseToGoBack(
  connection: DuckDBConnection,
  path: string,
  historyFile: string,
): Promise<void> {
  try {
    await whileAttached(connection, historyFile, 'published', async () => {
      const [answer] = await queryRows(connection, IS_BEHIND, z.object({ is_behind: z.boolean() })).catch(
        // It has another schema or is damaged, so it says nothing about the live database.
        () => [],
      );
      if (answer?.is_behind === true) throw await behindError(connection, path, historyFile);
    });
  } catch (error) {
    // A published history that cannot be opened is written again by the next publication.
    if (!(error instanceof AttachError)) throw error;
  }
}

const lackingRow = z.object({
  runs: z.int(),
  since: timestampColumn.nullable(),
  days: z.int(),
  first_day: dayColumn.nullable(),
  last_day: dayColumn.nullable(),
});

async function behindError(
  connection: DuckDBConnection,
  path: string,
  historyFile: string,
): Promise<BehindError> {
  const [lacking] = await queryRows(connection, LACKING, lackingRow);
  const { runs = 0, since, days = 0, first_day: first, last_day: last } = lacking ?? {};
  const range = first && last ? ` (${plainDayRange({ first, last })})` : '';
  const when = since ? ` since ${moment(since)}` : '';
  return new BehindError(
    `The live database ${path} is older than the history published from it: it lacks ${counted(days, 'loaded day')}${range} and ` +
      `${counted(runs, 'recorded step')}${when}. Either it was replaced with an older copy, or its log (${logOf(path)}) was deleted or cut short. ` +
      `Continuing would load those days again and overwrite the newer published state with the older one. Nothing was changed.\n` +
      `${RESTORE}\nOr, to continue from the older state, move ${historyFile} away.`,
  );
}
