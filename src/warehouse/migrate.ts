import type { DuckDBConnection } from '@duckdb/node-api';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { inTransaction } from './in-transaction.js';
import { queryRows, readSql } from './query.js';

/** Applied in this order; a released file is never edited, only followed by another. */
const MIGRATIONS = ['001_history', '002_runs', '003_agents', '004_requests', '005_deliveries'] as const;

/** What analysts query, in an order in which each needs only those before it. */
const VIEWS = [
  'site_days',
  'site_weeks',
  'page_weeks',
  'data_quality',
  'jobs',
  'job_effects',
  'top_pages',
  'page_history',
  'human_vs_ai',
  'movers',
] as const;

/** The database was written by an older version of Readership, and was opened to be left as it is. */
export class OlderSchemaError extends StorageError {}

/** Changes nothing: throws an `OlderSchemaError` when `migrate` would, a `StorageError` when a newer version wrote it. */
export async function expectMigrated(connection: DuckDBConnection, path: string): Promise<void> {
  const version = await currentVersion(connection, path);
  if (version < MIGRATIONS.length)
    throw new OlderSchemaError(
      `${path} was written by an older Readership (schema ${version}; this one writes ${MIGRATIONS.length}). ` +
        `The next command that writes brings it up to date, such as readership run; there is no way back but a copy made before.`,
    );
}

/**
 * Brings the database up to this version of Readership: each migration in one transaction with its
 * version row, then the views, which are cheap to create again, then the comments if their wording
 * changed. Throws a `StorageError` if a newer version has written the file.
 */
export async function migrate(connection: DuckDBConnection, path: string): Promise<void> {
  await connection.run('CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)');
  const version = await currentVersion(connection, path);
  for (const [index, name] of MIGRATIONS.entries()) {
    if (index < version) continue;
    await inTransaction(connection, async () => {
      await connection.run(readSql(import.meta.url, `migrations/${name}.sql`));
      await connection.run('INSERT INTO schema_version VALUES ($version)', { version: index + 1 });
    });
  }
  // Into the file at once: DuckDB 1.5 cannot replay every change of a table from its log.
  if (version < MIGRATIONS.length) await connection.run('CHECKPOINT');
  await createViews(connection);
  await describeTables(connection);
}

/**
 * The comment of `schema_version` is the digest of the wording applied, so that it is applied only
 * once.
 */
async function describeTables(connection: DuckDBConnection): Promise<void> {
  const comments = readSql(import.meta.url, 'comments.sql');
  const digest = createHash('sha256').update(comments).digest('hex');
  const applied = await queryRows(
    connection,
    "SELECT 1 FROM duckdb_tables() WHERE table_name = 'schema_version' AND comment = $digest",
    z.object({}),
    { digest },
  );
  if (applied.length > 0) return;
  await inTransaction(connection, async () => {
    await connection.run(`${comments}\nCOMMENT ON TABLE schema_version IS '${digest}'`);
  });
  await connection.run('CHECKPOINT');
}

async function createViews(connection: DuckDBConnection): Promise<void> {
  const statements = VIEWS.map((name) => readSql(import.meta.url, `views/${name}.sql`));
  await inTransaction(connection, async () => {
    await connection.run(statements.join('\n'));
  });
}

/**
 * 0 for a file that nothing was written to yet. Throws a `StorageError` when a newer version has
 * written the file.
 */
async function currentVersion(connection: DuckDBConnection, path: string): Promise<number> {
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
