import type { DuckDBConnection } from '@duckdb/node-api';
import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import type { LiveFile } from './live-file.js';
import { inTransaction, queryRows, readSql } from './query.js';

/** Applied in this order; a released file is never edited, only followed by another. */
const MIGRATIONS = [
  '001_history',
  '002_runs',
  '003_agents',
  '004_requests',
  '005_deliveries',
  '006_choice_codes',
  '007_workspace',
  '008_day_failures',
  '009_unfinished_days',
  '010_page_skips',
  '011_pull_requests',
  '012_channels',
] as const;

/** What analysts query, in an order in which each needs only those before it. */
const VIEWS = [
  'this_file',
  'site_days',
  'site_weeks',
  'page_weeks',
  'data_quality',
  'jobs',
  'job_effects',
  'project_effects',
  'top_pages',
  'page_history',
  'human_vs_ai',
  'movers',
  'usual_range',
  'dropped_days',
  'people_leaving',
] as const;

/** The database was written by an older version of Readership, and was opened to be left as it is. */
export class OlderSchemaError extends StorageError {}

/** Throws an `OlderSchemaError` when the database at `path` needs `migrate`. Changes nothing. */
export async function expectMigrated(connection: DuckDBConnection, path: string): Promise<void> {
  const version = await schemaVersion(connection, path);
  if (version < MIGRATIONS.length)
    throw new OlderSchemaError(
      `${path} was written by an older Readership (schema ${version}; this one writes ${MIGRATIONS.length}). ` +
        `The next command that writes brings it up to date, such as readership run. Only a copy made before then brings the old one back.`,
    );
}

/** Brings the live database, its views and its comments up to this version of Readership, in a new file. */
export async function migrateLive(file: LiveFile): Promise<void> {
  const version = await schemaVersion(file.connection, file.path);
  if (version < MIGRATIONS.length || !(await isDescribed(file.connection)))
    await file.rewrite((connection) => migrate(connection, file.path));
}

/**
 * Brings a database up to this version of Readership in place: each migration in one transaction with its version row,
 * then the views. DuckDB 1.5 cannot replay every change of a table from its log, so this is for a file that is given
 * up when it fails. Throws a `StorageError` when a newer version has written the file.
 */
export async function migrate(connection: DuckDBConnection, path: string): Promise<void> {
  await connection.run('CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)');
  const version = await schemaVersion(connection, path);
  for (const [index, name] of MIGRATIONS.entries()) {
    if (index < version) continue;
    await inTransaction(connection, async () => {
      await connection.run(readSql(import.meta.url, `migrations/${name}.sql`));
      await connection.run('INSERT INTO schema_version VALUES ($version)', { version: index + 1 });
    });
  }
  if (!(await isDescribed(connection))) await describe(connection);
}

/** The views and the comments: what explains the database to a reader, and holds no data. */
const descriptions = (): string =>
  [...VIEWS.map((name) => `views/${name}.sql`), 'comments.sql']
    .map((file) => readSql(import.meta.url, file))
    .join('\n');

/** The comment of `schema_version` is the digest of the views and comments, so that they are written only once. */
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Whether this version wrote the tables, views and comments of a database. */
export async function isDescribed(connection: DuckDBConnection): Promise<boolean> {
  const found = await queryRows(
    connection,
    "SELECT 1 FROM duckdb_tables() WHERE table_name = 'schema_version' AND comment = $digest",
    z.object({}),
    { digest: digestOf(descriptions()) },
  );
  return found.length > 0;
}

/** Writes the views, macros and comments; a macro answers only while the file is the one in use. */
export async function describe(connection: DuckDBConnection): Promise<void> {
  const text = descriptions();
  await inTransaction(connection, async () => {
    await connection.run(
      `${text.replaceAll('{file}', randomUUID())}\nCOMMENT ON TABLE schema_version IS '${digestOf(text)}'`,
    );
  });
}

/** 0 for an empty database. Throws a `StorageError` when a newer version has written the file. */
export async function schemaVersion(connection: DuckDBConnection, path: string): Promise<number> {
  const exists = await queryRows(
    connection,
    "SELECT table_name FROM duckdb_tables() WHERE table_name = 'schema_version'",
    z.object({}),
  );
  if (exists.length === 0) return 0;
  const rows = await queryRows(
    connection,
    'SELECT coalesce(max(version), 0) AS version FROM schema_version',
    z.object({ version: z.int() }),
  );
  const version = rows[0]?.version ?? 0;
  if (version > MIGRATIONS.length)
    throw new StorageError(
      `${path} was written by a newer Readership (schema ${version}; this one knows ${MIGRATIONS.length}). ` +
        `Nothing was changed. Install the newer version: npm install -g readership@latest`,
    );
  return version;
}
