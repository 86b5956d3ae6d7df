import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { EffectsJournal } from '../effects/journal.js';
import { isSamePlace, type Place } from '../effects/place.js';
import { queryRows, type Reader, runStatement } from './query.js';
import type { Warehouse } from './warehouse.js';

const TAKE_ID = 'INSERT INTO workspace (id) SELECT $proposed WHERE NOT EXISTS (FROM workspace)';
const SET_PLACE = 'UPDATE workspace SET machine = $machine, host = $host, path = $path';
const SET_PUBLICATIONS = 'UPDATE workspace SET publications = $publications';
const placeRow = z.object({
  machine: z.string().nullable(),
  host: z.string().nullable(),
  path: z.string().nullable(),
});
const workspaceRow = placeRow.extend({
  id: z.string(),
  lake: z.string().nullable(),
  publications: z.int(),
});

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
 * Gives the live database and the effects journal next to it the same id, and the same place to
 * send from: what either of them has, the journal before the database, or else `here`. Throws a
 * `StorageError` if they belong to different workspaces. Returns the place.
 */
export async function agreeOnWorkspace(
  journal: EffectsJournal,
  warehouse: Warehouse,
  { here, now }: { readonly here: Place; readonly now: Date },
): Promise<Place> {
  await journal.claim(
    await warehouse.transaction(({ connection }) => workspaceIdOf(connection, journal.workspace)),
  );
  const stored = await readPlace(warehouse);
  const place = journal.place ?? stored ?? here;
  if (journal.place === undefined) await journal.settleAt(place, now);
  if (stored === undefined || !isSamePlace(stored, place)) await recordPlace(warehouse, place);
  return place;
}

/** Where the workspace sends from; undefined if that was never recorded. */
export async function readPlace(reader: Reader): Promise<Place | undefined> {
  const [row] = await reader.query('FROM workspace', placeRow);
  if (row === undefined || row.machine === null || row.host === null || row.path === null) return undefined;
  return { machine: row.machine, host: row.host, path: row.path };
}

export const recordPlace = (warehouse: Warehouse, place: Place): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(SET_PLACE, { ...place }));

/** How often the workspace was published to a lake, as far as this database knows. */
export async function readPublications(connection: DuckDBConnection): Promise<number> {
  const [workspace] = await queryRows(connection, 'FROM workspace', workspaceRow);
  return workspace?.publications ?? 0;
}

export async function recordPublications(connection: DuckDBConnection, publications: number): Promise<void> {
  await runStatement(connection, SET_PUBLICATIONS, { publications });
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
