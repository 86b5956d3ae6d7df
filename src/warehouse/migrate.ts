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

/** The SQL files of a directory, in the order of the numbers with which their names begin. */
const filesIn = (directory: string): string[] =>
  readdirSync(new URL(`${directory}/`, import.meta.url)).sort();

/** Each named for its version. A released file is never edited, only followed by another. */
const MIGRATIONS = filesIn('migrations');

/** The version that 0.2.0 wrote, where the migrations begin. */
const FIRST_VERSION = 12;
const VERSION = FIRST_VERSION + MIGRATIONS.length - 1;

/** Another version wrote a file, which the next command that writes brings up to date. */
export class OtherVersionError extends StorageError {}

/** Throws an `OtherVersionError` when the database at `path` needs `migrate`. Changes nothing. */
export async function expectMigrated(connection: DuckDBConnection, path: string): Promise<void> {
  const version = await schemaVersion(connection, path);
  if (version < VERSION)
    throw new OtherVersionError(
      `${path} was written by an older Readership (schema ${version}; this one writes ${VERSION}). ` +
        `The next command that writes, such as readership run, migrates it. Make a copy first if you may want to go back.`,
    );
}

/** An empty database, written by the build; there is none in the package. That of an older build is migrated when it is opened. */
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
      await migrate(connection, path);
      // A copy has the id of the build's. One that was migrated has its own.
      if (empty !== undefined) await describeCopy(connection);
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

/** Migrates the live database, with its views and comments, to this version in a new file. */
export async function migrateLive(file: LiveFile): Promise<void> {
  const version = await schemaVersion(file.connection, file.path);
  if (version === VERSION && (await isDescribed(file.connection))) return;
  await file.rewrite(async (connection) => {
    await copyAll(connection);
    await whileUsing(connection, 'next', () => migrate(connection, file.path));
  });
}

/**
 * Migrates a database in place: the migrations that it lacks, and the views, in one transaction. DuckDB 1.5 cannot replay
 * every table change from its log, so this is only for a file that is discarded on failure. Throws a `StorageError` if a
 * newer version wrote the file.
 */
export async function migrate(connection: DuckDBConnection, path: string): Promise<void> {
  const version = await schemaVersion(connection, path);
  const lacking = MIGRATIONS.filter((file) => Number.parseInt(file) > version);
  const migrations = lacking.flatMap((file) => [
    readSql(import.meta.url, `migrations/${file}`),
    `INSERT INTO schema_version VALUES (${Number.parseInt(file)});`,
  ]);
  await inTransaction(connection, async () => {
    await connection.run(
      ['CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);', ...migrations].join('\n'),
    );
    if (await isDescribed(connection)) return;
    const text = descriptions();
    // Another version may have computed them differently.
    await connection.run('DELETE FROM kept_movers');
    await connection.run(
      `${text.replaceAll(FILE, randomUUID())}\nCOMMENT ON TABLE schema_version IS '${digestOf(text)}';`,
    );
  });
}

/** Stands for the id of the file in views and macros. */
const FILE = '{file}';

/** The statements that create the views and macros, each after those it depends on. */
const viewStatements = (): string[] =>
  filesIn('views').map((file) =>
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

/** Whether this version wrote the tables, views and comments of a database. */
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

/** 0 for an empty database. Throws a `StorageError` if a newer version wrote the file. */
export async function schemaVersion(connection: DuckDBConnection, path: string): Promise<number> {
  const [{ version } = { version: 0 }] = await queryRows(
    connection,
    'SELECT max(version) AS version FROM schema_version HAVING count(*) > 0',
    z.object({ version: z.int() }),
  ).catch((error: unknown) => {
    if (messageOf(error).includes('schema_version does not exist')) return [];
    throw error;
  });
  if (version > 0 && version < FIRST_VERSION)
    throw new StorageError(
      `${path} was written before Readership 0.2.0 (schema ${version}). Nothing was changed. Open it once with Readership 0.2.0.`,
    );
  if (version > VERSION)
    throw new StorageError(
      `${path} was written by a newer Readership (schema ${version}; this one supports ${VERSION}). ` +
        `Nothing was changed. Install the newer version of Readership.`,
    );
  return version;
}
