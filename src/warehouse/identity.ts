import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { EffectsJournal } from '../effects/journal.js';
import { type Act, isSamePlace, type Place } from '../effects/place.js';
import { type Reader, readerOf, runStatement, timestampColumn } from './query.js';
import type { Warehouse } from './warehouse.js';

const TAKE_ID = 'INSERT INTO workspace (id) SELECT $proposed WHERE NOT EXISTS (FROM workspace)';
const SET_PLACE = 'UPDATE workspace SET machine = $machine, host = $host, path = $path';
const SET_PUBLICATIONS = 'UPDATE workspace SET publications = $publications';
const SET_ACT = 'UPDATE workspace SET act = $number, act_after = $after, act_needed = 0';
const AGREE_ON_ACT = 'UPDATE workspace SET act = $number, act_after = $after';
const NEED_ACT = 'UPDATE workspace SET act_needed = $needed, act_needed_at = $at';
const REMEMBER_LAKE =
  'UPDATE workspace SET lakes = list_append(list_filter(coalesce(lakes, []), known -> known <> $location), $location)';
const placeRow = z.object({
  machine: z.string().nullable(),
  host: z.string().nullable(),
  path: z.string().nullable(),
});
const workspaceRow = z.object({
  id: z.string(),
  /** The lake that is up to date. */
  lake: z.string().nullable(),
  lakes: z.array(z.string()).nullable(),
  /** How often the workspace was published to a lake, as far as this database knows. */
  publications: z.int(),
  act: z.int(),
  act_after: z.int(),
  act_needed: z.int(),
  act_needed_at: timestampColumn.nullable(),
});
const NOTHING = { lake: null, lakes: null, act_needed_at: null };
const NEW = { id: '', publications: 0, act: 0, act_after: 0, act_needed: 0, ...NOTHING };

/** The workspace id of a live database, which adopts the proposed id if it has none. */
export async function workspaceIdOf(
  connection: DuckDBConnection,
  proposed: string = randomUUID(),
): Promise<string> {
  await runStatement(connection, TAKE_ID, { proposed });
  return (await readWorkspaceRow(readerOf(connection))).id;
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

/** What the live database records of publishing and sending. */
export async function readWorkspaceRow(reader: Reader): Promise<z.infer<typeof workspaceRow>> {
  const [row] = await reader.query('FROM workspace', workspaceRow);
  return row ?? NEW;
}

export async function recordPublications(connection: DuckDBConnection, publications: number): Promise<void> {
  await runStatement(connection, SET_PUBLICATIONS, { publications });
}

/** Records a claim, and that the database knows everything before it. */
export async function recordAct(connection: DuckDBConnection, { number, after }: Act): Promise<void> {
  await runStatement(connection, SET_ACT, { number, after });
}

/** Records which number a database that was restored from a lake has to know before it sends. */
export async function needAct(connection: DuckDBConnection, needed: number, at: Date): Promise<void> {
  await runStatement(connection, NEED_ACT, { needed, at });
}

/** Gives the database and the journal next to it the latest claim of either. Both know by now what the other knew. */
export async function agreeOnAct(journal: EffectsJournal, warehouse: Warehouse, now: Date): Promise<void> {
  const { act: number, act_after: after } = await readWorkspaceRow(warehouse);
  if (journal.act.number < number) await journal.recordAct({ number, after }, now);
  if (journal.act.number > number)
    await warehouse.exclusive((connection) => runStatement(connection, AGREE_ON_ACT, { ...journal.act }));
}

/** The location of the lake that is up to date; null if there is none. */
export async function publishedLake(reader: Reader): Promise<string | null> {
  return (await readWorkspaceRow(reader)).lake;
}

/** Records the location of the lake that is up to date; null if there is none. */
export async function recordLake(connection: DuckDBConnection, location: string | null): Promise<void> {
  const sql = 'UPDATE workspace SET lake = $location WHERE lake IS DISTINCT FROM $location';
  await runStatement(connection, sql, { location });
}

/** Records that there is a lake of this workspace: if it is missing later, it is not a new one. */
export async function rememberLake(connection: DuckDBConnection, location: string): Promise<void> {
  await runStatement(connection, REMEMBER_LAKE, { location });
}
