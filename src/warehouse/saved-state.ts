import { type DuckDBConnection, DuckDBBlobValue } from '@duckdb/node-api';
import { z } from 'zod';
import { isOfDamage } from '../storage.js';
import type { SavedState } from '../state/saved.js';
import { AttachError, whileAttached } from './duckdb.js';
import { queryRows, readSql, runStatement } from './query.js';
import type { Warehouse } from './warehouse.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const CREATE = statement('create-saved-state');
const STORE = statement('store-saved-state');
const HAS = statement('has-saved-state');

/** Stores a copy of the state in the current database, a history that is being written. */
export async function storeSavedState(
  connection: DuckDBConnection,
  { workspace, attempt, database }: SavedState,
): Promise<void> {
  await connection.run(CREATE);
  await runStatement(connection, STORE, { workspace, attempt, database: new DuckDBBlobValue(database) });
}

/** The state that the attached database `saved` carries; undefined if it carries none. */
async function readAttached(connection: DuckDBConnection): Promise<SavedState | undefined> {
  if ((await queryRows(connection, HAS, z.object({}))).length === 0) return undefined;
  const result = await connection.runAndReadAll(
    'SELECT workspace, attempt, database FROM saved.internal.saved_state',
  );
  const row = z.tuple([z.string(), z.bigint(), z.instanceof(DuckDBBlobValue)]);
  return z
    .array(row)
    .parse(result.getRows())
    .map(([workspace, attempt, { bytes }]) => ({ workspace, attempt: Number(attempt), database: bytes }))[0];
}

/** The state that a history carries; undefined if it carries none. Throws DuckDB's error if it cannot be read. */
export const readSavedState = (connection: DuckDBConnection, path: string): Promise<SavedState | undefined> =>
  whileAttached(connection, path, 'saved', () => readAttached(connection));

/**
 * The state that the published history carries; undefined if there is none, or if it cannot be opened or is damaged: it
 * is written again by the next publication.
 */
export const publishedState = (store: Warehouse, path: string): Promise<SavedState | undefined> =>
  store.exclusive((connection) =>
    readSavedState(connection, path).catch((error: unknown) => {
      if (error instanceof AttachError || isOfDamage(error)) return undefined;
      throw error;
    }),
  );
