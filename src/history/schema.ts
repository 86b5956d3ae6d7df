import type { DuckDBConnection } from '@duckdb/node-api';
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { of04 } from '../storage.js';
import { messageOf, SchemaError } from '../errors.js';
import { readSql } from '../columns.js';
import { inTransaction, queryRows } from './duckdb.js';

/** The version of `schema.sql`. */
const VERSION = 1;

/** Stands for the id of the file in views and macros. */
const FILE = '{file}';

/** Creates the tables, views, macros and comments in an empty database. */
export const createSchema = (connection: DuckDBConnection): Promise<void> =>
  inTransaction(connection, async () => {
    await connection.run(readSql(import.meta.url, 'schema.sql'));
    await connection.run(`INSERT INTO internal.version VALUES (${VERSION}, '')`);
    await createDescriptions(connection);
  });

/**
 * Gives the current database, a copy, its own id, and the views, macros and comments of this program if it has others: a
 * macro answers for one file only.
 */
export async function describe(connection: DuckDBConnection): Promise<void> {
  if (await isDescribed(connection)) await createViews(connection, (sql) => sql.includes(FILE));
  else await createDescriptions(connection);
}

async function createDescriptions(connection: DuckDBConnection): Promise<void> {
  await createViews(connection);
  await connection.run(readSql(import.meta.url, 'comments.sql'));
  await connection.run(`UPDATE internal.version SET descriptions = '${digest()}'`);
}

async function createViews(
  connection: DuckDBConnection,
  isWanted: (sql: string) => boolean = () => true,
): Promise<void> {
  const statements = viewStatements().filter(isWanted);
  await connection.run(statements.join('\n').replaceAll(FILE, randomUUID()));
}

/** The statements that create the views and macros, each after those it depends on. */
const viewStatements = (): string[] =>
  readdirSync(new URL('views/', import.meta.url))
    .sort()
    .map((file) =>
      readSql(import.meta.url, `views/${file}`).replaceAll(
        'is_own_file()',
        isOwnFile(file.replace(/^\d+_|\.sql$/g, '')),
      ),
    );

/** A condition that fails, with what to do, where a macro would read another database than its own. */
const isOwnFile = (macro: string): string =>
  `(SELECT CASE id WHEN '${FILE}' THEN true ELSE error('${macro} reads the current database, which is not the one it belongs to: ` +
  `run USE with the attached database first, then FROM ${macro}(…)') END FROM internal.this_file)`;

/** A digest of the views, macros and comments, which shows whether a file has those of this program. */
const digest = (): string =>
  createHash('sha256')
    .update([...viewStatements(), readSql(import.meta.url, 'comments.sql')].join('\n'))
    .digest('hex');

/** Whether a database has the views and comments of this program. */
export async function isDescribed(connection: DuckDBConnection): Promise<boolean> {
  const row = z.object({ descriptions: z.string() });
  const [found] = await queryRows(connection, 'SELECT descriptions FROM internal.version', row);
  return found?.descriptions === digest();
}

/** Throws a `SchemaError` if the file in the place of the history is not one of this version. */
export async function expectSchema(connection: DuckDBConnection, path: string): Promise<void> {
  const writer = await writerOf(connection, path);
  if (writer === '0.4') throw new SchemaError(of04(join(dirname(path), 'warehouse.duckdb')));
  if (writer === 'another program') throw ofOtherProgram(path);
}

export const ofOtherProgram = (path: string): SchemaError =>
  new SchemaError(
    `${path} is not a history of Readership: another program wrote it. Nothing was changed. Move it away, or set dataDir to another directory, then run the command again.`,
  );

/** What wrote a database. Throws a `SchemaError` if that was a newer version. */
export async function writerOf(
  connection: DuckDBConnection,
  path: string,
): Promise<'this version' | '0.4' | 'another program'> {
  const row = z.object({ version: z.int() });
  try {
    const [found] = await queryRows(connection, 'SELECT version FROM internal.version', row);
    if (found?.version === VERSION) return 'this version';
  } catch (error) {
    if (!/version"? does not exist/.test(messageOf(error))) throw error;
    return (await isOf04(connection)) ? '0.4' : 'another program';
  }
  throw new SchemaError(
    `A newer version of Readership wrote the history ${path}. Nothing was changed. Install that version of Readership.`,
  );
}

/** Whether a database has the tables of Readership 0.4. */
async function isOf04(connection: DuckDBConnection): Promise<boolean> {
  const found = await queryRows(
    connection,
    "SELECT 1 FROM duckdb_tables() WHERE table_name IN ('schema_version', 'day_loads', 'page_views') HAVING count(*) >= 3",
    z.object({}),
  );
  return found.length > 0;
}
