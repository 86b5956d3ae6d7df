import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { identifier } from './duckdb.js';
import { queryRows, runStatement } from './query.js';

/** The tables of the state that analysts ask for. */
export const STATE_TABLES = [
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
