import { type DuckDBConnection, DuckDBBlobValue } from '@duckdb/node-api';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { queryRows, runStatement } from './query.js';

/** A copy of the state as a history carries it: the bytes of a SQLite file, and what they belong to. */
export interface CarriedState {
  /** The id of the workspace. */
  readonly workspace: string;
  /** The number of its last attempt to send something. */
  readonly attempt: number;
  /** How often jobs, messages, emails and skips had changed. */
  readonly changes: number;
  readonly database: Uint8Array;
}

const summaryRow = z.object({ workspace: z.string(), attempt: z.int(), changes: z.int() });

/** Replaces the state that the current database carries. */
export async function storeState(
  connection: DuckDBConnection,
  { database, ...summary }: CarriedState,
): Promise<void> {
  await connection.run('DELETE FROM internal.saved_state');
  await runStatement(
    connection,
    'INSERT INTO internal.saved_state VALUES ($workspace, $attempt, $changes, $database)',
    { ...summary, database: new DuckDBBlobValue(database) },
  );
}

/** What the state that a history carries knows; undefined if it carries none. */
export const readStateSummary = async (
  connection: DuckDBConnection,
): Promise<Omit<CarriedState, 'database'> | undefined> =>
  (
    await queryRows(connection, 'SELECT workspace, attempt, changes FROM internal.saved_state', summaryRow)
  )[0];

/** The state that a history carries; undefined if it carries none. */
export async function readCarriedState(connection: DuckDBConnection): Promise<CarriedState | undefined> {
  const summary = await readStateSummary(connection);
  if (summary === undefined) return undefined;
  const result = await connection.runAndReadAll('SELECT database FROM internal.saved_state');
  const [[database] = []] = z.array(z.tuple([z.instanceof(DuckDBBlobValue)])).parse(result.getRows());
  return database && { ...summary, database: database.bytes };
}

/** Whether a state knows as much of what was sent as the one that the history carries. Throws if they are of two workspaces. */
export function isNewerState(
  path: string,
  saved: CarriedState,
  carried: Omit<CarriedState, 'database'> | undefined,
) {
  if (carried === undefined) return true;
  if (carried.workspace !== saved.workspace)
    throw new StorageError(
      `The history ${path} belongs to another workspace than the state beside it. Nothing was changed. ` +
        'Put the right data directory there, or move the history away.',
    );
  return carried.attempt <= saved.attempt;
}
