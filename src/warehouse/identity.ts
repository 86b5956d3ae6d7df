import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { EffectsJournal } from '../effects/journal.js';
import { queryRows, type Reader, runStatement } from './query.js';
import type { Warehouse } from './warehouse.js';

const TAKE_ID = 'INSERT INTO workspace (id) SELECT $proposed WHERE NOT EXISTS (FROM workspace)';
const workspaceRow = z.object({ id: z.string(), lake: z.string().nullable() });

/** The workspace id of a live database, which adopts the proposed id if it has none. */
export async function workspaceIdOf(
  connection: DuckDBConnection,
  proposed: string = randomUUID(),
): Promise<string> {
  await runStatement(connection, TAKE_ID, { proposed });
  const [workspace] = await queryRows(connection, 'FROM workspace', workspaceRow);
  return workspace?.id ?? proposed;
}

/**
 * Gives the live database and the effects journal next to it the same id: the one that either of
 * them has. Throws a `StorageError` if they belong to different workspaces.
 */
export async function agreeOnWorkspace(journal: EffectsJournal, warehouse: Warehouse): Promise<void> {
  await journal.claim(
    await warehouse.transaction(({ connection }) => workspaceIdOf(connection, journal.workspace)),
  );
}

/** The location of the lake that is up to date; null if there is none. */
export async function publishedLake(reader: Reader): Promise<string | null> {
  const [workspace] = await reader.query('FROM workspace', workspaceRow);
  return workspace?.lake ?? null;
}

/** Records the location of the lake that is up to date; null if there is none. */
export async function recordLake(connection: DuckDBConnection, location: string | null): Promise<void> {
  const sql = 'UPDATE workspace SET lake = $location WHERE lake IS DISTINCT FROM $location';
  await runStatement(connection, sql, { location });
}
