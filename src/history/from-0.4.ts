import type { DuckDBConnection } from '@duckdb/node-api';
import { link } from 'node:fs/promises';
import { exists } from '../files.js';
import { literal, withConnection } from './duckdb.js';
import { EMPTY_HISTORY } from './history.js';
import { readSql } from '../columns.js';
import { queryRows, type Row, rowSchema } from './query.js';
import { describe } from './schema.js';
import { writeNext } from './write.js';

/** The tables of the state, each after those it refers to. */
const STATE_TABLES = [
  ...['workspace', 'jobs', 'messages', 'job_changes', 'pull_requests', 'prompt_pauses', 'choices', 'skips'],
  ...['emails', 'notes', 'runs', 'day_failures', 'platform_facts', 'verifications'],
] as const;

/** What a database of Readership 0.4 has for the state: the rows of its tables. */
export type StateOf04 = ReadonlyMap<string, readonly Row[]>;

/** Reads what the state is made of. Throws DuckDB's error while Readership 0.4 has the database open. */
export const readStateOf04 = (path: string): Promise<StateOf04> =>
  withConnection(async (connection) => {
    await attach(connection, path);
    await connection.run('USE old');
    const tables = new Map<string, Row[]>();
    for (const table of STATE_TABLES)
      tables.set(
        table,
        await queryRows(connection, readSql(import.meta.url, `from-0.4/${table}.sql`), rowSchema),
      );
    return tables;
  });

/** Writes the history of such a database to `path`, and keeps what is there under the name `aside`. */
export async function writeHistoryOf04(path: string, source: string, aside: string): Promise<void> {
  await writeNext(path, {
    source: EMPTY_HISTORY,
    change: async (connection) => {
      await connection.run(readSql(import.meta.url, 'from-0.4/tables.sql'));
      await describe(connection);
    },
    prepare: (connection) => attach(connection, source),
    expectCurrent: async () => {
      if ((await exists(path)) && !(await exists(aside))) await link(path, aside);
    },
  });
}

/** The log that 0.4 had not yet made part of its file is read too. */
async function attach(connection: DuckDBConnection, path: string): Promise<void> {
  await connection.run(`ATTACH ${literal(path)} AS old (READ_ONLY)`);
}
