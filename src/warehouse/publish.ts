import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, constants, copyFile, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../errors.js';
import { syncToDisk } from '../files.js';
import { quoted } from './instance.js';
import { changeDatabase, removeDatabase } from './live-file.js';
import { describe, migrate } from './migrate.js';
import { dayColumn, inTransaction, queryRows, readSql, runStatement } from './query.js';
import { storageFailure } from './storage-failure.js';
import type { Warehouse } from './warehouse.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const CHANGED_DAYS = statement('changed-days');
const DELETE_CHANGED_DAYS = statement('delete-changed-days');
const INSERT_CHANGED_DAYS = statement('insert-changed-days');
const MUST_BE_WHOLE = statement('must-be-whole');
const QUARTERS = statement('quarters');
const INSERT_QUARTER = statement('insert-quarter');
const SAME_VERSION = statement('same-version');
const LAST_OUTCOMES_DIFFER = statement('last-outcomes-differ');

/**
 * What no view shows: alone, it is no reason to publish. Of the other tables every column counts; `page_views` changes
 * only with `day_loads` or `restatements`, and of `runs` only how each step ended last.
 */
const BOOKKEEPING: Readonly<Record<string, 'all' | readonly string[]>> = {
  page_views: 'all',
  runs: 'all',
  request_uses: 'all',
  unfinished_pages: 'all',
  verifications: 'all',
  day_loads: ['attempted_at', 'loaded_at', 'failures'],
  agent_jobs: ['polls', 'next_poll_at'],
  pull_requests: ['checked_at', 'next_check_at'],
  workspace: ['lake'],
};

/**
 * Publishes the history: a sorted, read-only copy of the whole live database that takes the place of the one at
 * `target` in one step. Readers who have the old one open keep it; whoever opens it next gets the new one. The holder
 * of the live database is the only publisher, so the unfinished copy has a fixed name and a stale one can go.
 *
 * Returns the size of the copy in bytes. Throws a `StorageError`; the copy published before then still stands.
 */
export const publish = (warehouse: Warehouse, target: string): Promise<number> =>
  replacing(warehouse, target, async (unfinished) => {
    await createEmpty(unfinished);
    await attached(warehouse, unfinished, fill);
  });

/**
 * As `publish`, at the cost of what changed: the days and ledgers that differ are replaced in a copy of what was
 * published last. Undefined when no reader would see a difference, unless it is to be published `anyway`. Now and then,
 * and when nothing usable was published, everything is written again.
 */
export async function publishChanges(
  warehouse: Warehouse,
  target: string,
  anyway = false,
): Promise<number | undefined> {
  const compared = (connection: DuckDBConnection) => compare(connection, anyway);
  const found = await attached(warehouse, target, compared, 'READ_ONLY').catch((error: unknown) => {
    if (!(error instanceof UnusableError)) throw storageFailure(`compare with ${target}`, error);
    return 'unusable' as const;
  });
  if (found === 'equal') return undefined;
  if (found === 'unusable' || found === 'replace') return publish(warehouse, target);
  return replacing(warehouse, target, async (unfinished) => {
    // Reading the live file like this would drop DuckDB's lock on it, but nobody writes to what was published.
    await copyFile(target, unfinished, constants.COPYFILE_FICLONE);
    await chmod(unfinished, 0o600);
    // A macro answers for one file only, so the copy gets its own.
    await changeDatabase(unfinished, describe);
    await attached(warehouse, unfinished, bringUpToDate);
  });
}

/** Writes a file with `write`, and puts it in the place of `target` in one step; returns its size. */
async function replacing(
  warehouse: Warehouse,
  target: string,
  write: (unfinished: string) => Promise<void>,
): Promise<number> {
  const unfinished = `${target}.publishing`;
  try {
    await removeDatabase(unfinished);
    await write(unfinished);
    await chmod(unfinished, 0o444);
    await syncToDisk(unfinished);
    await rename(unfinished, target);
    await syncToDisk(dirname(target));
    return (await stat(target)).size;
  } catch (cause) {
    await removeDatabase(unfinished).catch(() => undefined);
    warehouse.noteFailure(cause);
    throw storageFailure(`publish the history to ${target} (the one published before still stands)`, cause);
  }
}

/** What was published is missing, damaged or of another version. */
class UnusableError extends Error {}

/** Runs `work` while a file is attached to the live database as `publication`. Throws an `UnusableError` when it cannot be. */
const attached = <Result>(
  warehouse: Warehouse,
  path: string,
  work: (connection: DuckDBConnection) => Promise<Result>,
  mode: 'READ_ONLY' | 'READ_WRITE' = 'READ_WRITE',
): Promise<Result> =>
  warehouse.exclusive(async (connection) => {
    await connection.run(`ATTACH ${quoted(path)} AS publication (${mode})`).catch((cause: unknown) => {
      throw new UnusableError(messageOf(cause), { cause });
    });
    try {
      return await work(connection);
    } finally {
      await connection.run('DETACH publication');
    }
  });

/** The same migrations and views as the live file, so that the copy explains itself and can be restored from. */
const createEmpty = (path: string): Promise<void> =>
  changeDatabase(path, (connection) => migrate(connection, path));

async function tablesOf(connection: DuckDBConnection): Promise<string[]> {
  const rows = await queryRows(
    connection,
    "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = 'publication' AND table_name <> 'schema_version'",
    z.object({ name: z.string() }),
  );
  return rows.map(({ name }) => name);
}

/** Every table, sorted: the ledgers by their columns from the left, views a quarter at a time, which takes less memory. */
async function fill(connection: DuckDBConnection): Promise<void> {
  for (const name of await tablesOf(connection))
    if (name !== 'page_views')
      await connection.run(`INSERT INTO publication.${name} FROM main.${name} ORDER BY ALL`);
  const quarters = await queryRows(
    connection,
    QUARTERS,
    z.object({ project: z.string(), quarter: dayColumn }),
  );
  for (const quarter of quarters) await runStatement(connection, INSERT_QUARTER, quarter);
  await connection.run('CHECKPOINT publication');
}

/** Whether readers would see a difference, or get the file `anyway`, and how: `update` leaves its changed days behind. */
async function compare(
  connection: DuckDBConnection,
  anyway: boolean,
): Promise<'equal' | 'update' | 'replace'> {
  const [version] = await queryRows(connection, SAME_VERSION, z.object({ is_same: z.boolean() }));
  if (version?.is_same !== true) throw new UnusableError('another version wrote it');
  const [runs] = await queryRows(connection, LAST_OUTCOMES_DIFFER, z.object({ differs: z.boolean() }));
  let differs = anyway || runs?.differs !== false;
  for (const name of await tablesOf(connection)) {
    const hidden = BOOKKEEPING[name] ?? [];
    if (hidden !== 'all') differs ||= await isDifferent(connection, name, hidden);
  }
  if (!differs) return 'equal';
  await connection.run(CHANGED_DAYS);
  const [whole] = await queryRows(connection, MUST_BE_WHOLE, z.object({ must_be_whole: z.boolean() }));
  return whole?.must_be_whole === false ? 'update' : 'replace';
}

/** Whether the rows of a table are not those of the published one, columns in `hidden` aside. */
async function isDifferent(
  connection: DuckDBConnection,
  table: string,
  hidden: readonly string[] = [],
): Promise<boolean> {
  const columns = hidden.length === 0 ? '*' : `* EXCLUDE (${hidden.join(', ')})`;
  const [live, published] = ['main', 'publication'].map((name) => `SELECT ${columns} FROM ${name}.${table}`);
  const [row] = await queryRows(
    connection,
    `SELECT EXISTS (${live} EXCEPT ALL ${published}) OR EXISTS (${published} EXCEPT ALL ${live}) AS differs`,
    z.object({ differs: z.boolean() }),
  );
  return row?.differs !== false;
}

/** Replaces the days that `compare` found and the ledgers that differ. */
async function bringUpToDate(connection: DuckDBConnection): Promise<void> {
  const ledgers = (await tablesOf(connection)).filter((name) => name !== 'page_views');
  await inTransaction(connection, async () => {
    await connection.run(DELETE_CHANGED_DAYS);
    await connection.run(INSERT_CHANGED_DAYS);
    for (const name of ledgers) {
      if (!(await isDifferent(connection, name))) continue;
      await connection.run(`DELETE FROM publication.${name}`);
      await connection.run(`INSERT INTO publication.${name} FROM main.${name} ORDER BY ALL`);
    }
  });
  await connection.run('CHECKPOINT publication');
}
