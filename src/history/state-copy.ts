import { DuckDBBlobValue, type DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { identifier, queryRows, runStatement } from './duckdb.js';
import { StorageError } from '../errors.js';

/** The tables of the state that analysts ask for. */
const STATE_TABLES = [
  'jobs',
  'choices',
  'skips',
  'emails',
  'notes',
  'runs',
  'day_failures',
  'first_days',
] as const;

/** Their rows as JSON, with the columns that the history has. */
export type StateTables = Readonly<Record<(typeof STATE_TABLES)[number], string>>;

const NO_ROWS = '[]';

/** The database of a reader that has the current tables of the state. */
const CURRENT = 'state_now';

/** Replaces the copies of tables of the state in a history that is being written. */
export async function storeTables(connection: DuckDBConnection, tables: StateTables): Promise<void> {
  for (const name of STATE_TABLES) {
    await connection.run(`DELETE FROM ${name}`);
    if (tables[name] === NO_ROWS) continue;
    await runStatement(connection, `INSERT INTO ${name} BY NAME ${rowsOf(await rowType(connection, name))}`, {
      rows: tables[name],
    });
  }
}

/** The current tables of the state, as every connection to an opened history sees them instead of the stored ones. */
export class CurrentTables {
  readonly #rows = new Map<string, string>();

  /** Shows these tables on a connection from now on. */
  async show(connection: DuckDBConnection, tables: StateTables): Promise<void> {
    if (this.#rows.size === 0) await connection.run(`ATTACH ':memory:' AS ${CURRENT} (READ_WRITE)`);
    for (const name of STATE_TABLES) {
      if (this.#rows.get(name) === tables[name]) continue;
      const sql = `CREATE OR REPLACE TABLE ${CURRENT}.${name} AS ${rowsOf(await rowType(connection, name))}`;
      await runStatement(connection, sql, { rows: tables[name] });
      const isNew = !this.#rows.has(name);
      this.#rows.set(name, tables[name]);
      if (isNew) await this.#showTable(connection, name);
    }
  }

  /** Shows the same tables on another connection. */
  async showOn(connection: DuckDBConnection): Promise<void> {
    for (const name of this.#rows.keys()) await this.#showTable(connection, name);
  }

  async #showTable(connection: DuckDBConnection, name: string): Promise<void> {
    await connection.run(`CREATE TEMP VIEW ${name} AS FROM ${CURRENT}.${name}`);
  }
}

const columnRow = z.object({ column_name: z.string(), column_type: z.string() });

/** The type of a row of a table, as SQL. */
async function rowType(connection: DuckDBConnection, table: string): Promise<string> {
  const columns = await queryRows(connection, `DESCRIBE ${table}`, columnRow);
  const fields = columns.map(({ column_name: name, column_type: type }) => `${identifier(name)} ${type}`);
  return `STRUCT(${fields.join(', ')})`;
}

const rowsOf = (type: string): string => `SELECT unnest($rows::JSON::${type}[], max_depth := 2)`;

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

/** What a carried state belongs to. */
export type StateSummary = Omit<CarriedState, 'database'>;

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
export const readStateSummary = async (connection: DuckDBConnection): Promise<StateSummary | undefined> =>
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
export function isAtLeastAsNew(path: string, saved: CarriedState, carried: StateSummary | undefined) {
  if (carried === undefined) return true;
  if (carried.workspace !== saved.workspace)
    throw new StorageError(
      `The history ${path} belongs to another workspace than the state beside it. Nothing was changed. ` +
        'Put the right data directory there, or move the history away.',
    );
  return carried.attempt <= saved.attempt;
}
