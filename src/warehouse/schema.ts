import type { DuckDBConnection } from '@duckdb/node-api';
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { constants, copyFile, link, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { messageOf, StorageError } from '../errors.js';
import { exists, ignoreMissing, packageFile, syncToDisk } from '../files.js';
import { whileUsing } from './duckdb.js';
import { changeDatabase, copyAll, type LiveFile, logOf, newOf, removeDatabase } from './live-file.js';
import { inTransaction, queryRows, readSql } from './query.js';

/** The version of `schema.sql`. */
const VERSION = 28;

/** An empty database, written by the build. */
const EMPTY = packageFile('dist/warehouse/empty.duckdb');

/**
 * Creates a complete, empty database at `path`, unless another process does so first. Throws a `StorageError` if there is
 * the log of a database that is missing.
 */
export async function createDatabase(path: string): Promise<void> {
  if ((await exists(logOf(path))) && !(await exists(path)))
    throw new StorageError(
      `The live database ${path} is missing, but its log exists, which cannot be read without it. Nothing was changed.\n` +
        `Put the database back, or restore a backup: readership restore --from FILE\nOr, to start over, move ${logOf(path)} away.`,
    );
  const own = `${newOf(path)}-${randomUUID()}`;
  try {
    const empty = await readFile(EMPTY).catch(ignoreMissing);
    if (empty !== undefined) await writeFile(own, empty, { mode: 0o600 });
    await changeDatabase(own, async (connection) => {
      // A copy has the macros of the build's database, and needs its own.
      await (empty === undefined ? createSchema(connection) : describeCopy(connection));
    });
    await syncToDisk(own);
    // Not every file system has links.
    await link(own, path).catch(async () => {
      await copyFile(own, path, constants.COPYFILE_EXCL);
      await syncToDisk(path);
    });
    await syncToDisk(dirname(path));
  } catch (error) {
    if (!(await exists(path))) throw error;
  } finally {
    await removeDatabase(own);
  }
}

/** Creates the tables, views, macros and comments in a database without tables. */
export const createSchema = (connection: DuckDBConnection): Promise<void> =>
  inTransaction(connection, async () => {
    await connection.run(
      `${readSql(import.meta.url, 'schema.sql')}\nINSERT INTO schema_version VALUES (${VERSION});`,
    );
    await createDescriptions(connection);
  });

/** Creates what is missing in the live database, in a new file: the schema, or the views and comments of this program. */
export async function completeLive(file: LiveFile): Promise<void> {
  const isNew = !(await hasSchema(file.connection, file.path));
  if (!isNew && (await isDescribed(file.connection))) return;
  await file.rewrite(async (connection) => {
    await copyAll(connection);
    await whileUsing(connection, 'next', () => (isNew ? createSchema(connection) : describe(connection)));
  });
}

/** Gives the current database the views, macros and comments of this program, unless it has them. */
export async function describe(connection: DuckDBConnection): Promise<void> {
  if (!(await isDescribed(connection))) await inTransaction(connection, () => createDescriptions(connection));
}

async function createDescriptions(connection: DuckDBConnection): Promise<void> {
  const text = descriptions();
  // Another program may have computed them differently.
  await connection.run('DELETE FROM kept_movers');
  await connection.run(
    `${text.replaceAll(FILE, randomUUID())}\nCOMMENT ON TABLE schema_version IS '${digestOf(text)}';`,
  );
}

/** Stands for the id of the file in views and macros. */
const FILE = '{file}';

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
  `run USE with the attached database first, then FROM ${macro}(…)') END FROM this_file)`;

/** The views, macros and comments. */
const descriptions = (): string => [...viewStatements(), readSql(import.meta.url, 'comments.sql')].join('\n');

/** The comment of `schema_version` is a digest of the views and comments, which shows whether they are current. */
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Whether a database has the views and comments of this program. */
export async function isDescribed(connection: DuckDBConnection): Promise<boolean> {
  const found = await queryRows(
    connection,
    "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() AND table_name = 'schema_version' AND comment = $digest",
    z.object({}),
    { digest: digestOf(descriptions()) },
  );
  return found.length > 0;
}

/** Gives the current database, a copy, its own id and macros: a macro works for one file only. */
export const describeCopy = (connection: DuckDBConnection): Promise<void> =>
  inTransaction(connection, () =>
    createViews(
      connection,
      viewStatements().filter((sql) => sql.includes(FILE)),
    ),
  );

/** Creates the views and macros in the current database, over tables of any kind. */
async function createViews(connection: DuckDBConnection, views = viewStatements()): Promise<void> {
  await connection.run(views.join('\n').replaceAll(FILE, randomUUID()));
}

/** A database was written by a version with other tables. */
export class SchemaError extends StorageError {}

/**
 * Whether a database has the tables of this version; false if it has none. Throws a `SchemaError` if another version
 * wrote it.
 */
export async function hasSchema(connection: DuckDBConnection, path: string): Promise<boolean> {
  const [found] = await queryRows(
    connection,
    'SELECT max(version) AS version FROM schema_version HAVING count(*) > 0',
    z.object({ version: z.int() }),
  ).catch((error: unknown) => {
    if (messageOf(error).includes('schema_version does not exist')) return [];
    throw error;
  });
  if (found === undefined) return false;
  const { version } = found;
  if (version === VERSION) return true;
  const isOlder = version < VERSION;
  throw new SchemaError(
    `${path} was written by ${isOlder ? 'an older' : 'a newer'} Readership (schema ${version}; this one has schema ${VERSION}), and was not changed: ` +
      (isOlder ? 'open it with Readership 0.4.' : 'install the newer version of Readership.'),
  );
}
