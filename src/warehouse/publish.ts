import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, constants, copyFile, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { messageOf } from '../errors.js';
import { syncToDisk } from '../files.js';
import { quoted } from './instance.js';
import { changeDatabase, removeDatabase } from './live-file.js';
import { describe, migrate } from './migrate.js';
import { dayColumn, inTransaction, queryRows, type Reader, readSql, runStatement } from './query.js';
import { storageFailure } from './storage-failure.js';
import { tableDigests, tablesOf, visibleState } from './visible.js';
import type { Warehouse } from './warehouse.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const CHANGED_DAYS = statement('changed-days');
const DELETE_CHANGED_DAYS = statement('delete-changed-days');
const INSERT_CHANGED_DAYS = statement('insert-changed-days');
const MUST_BE_WHOLE = statement('must-be-whole');
const QUARTERS = statement('quarters');
const INSERT_QUARTER = statement('insert-quarter');
const SAME_VERSION = statement('same-version');

/** Whether readers would see no difference between the live database and the file published from it. */
export async function isPublished(warehouse: Warehouse, target: string, now: Date): Promise<boolean> {
  const compared = async (connection: DuckDBConnection) => {
    await expectSameVersion(connection);
    const reader = readerOf(connection);
    const live = await visibleState(reader, 'main', now);
    return isDeepStrictEqual(live, await visibleState(reader, 'publication', now));
  };
  try {
    return await attached(warehouse, target, compared, 'READ_ONLY');
  } catch (error) {
    if (error instanceof UnusableError) return false;
    throw storageFailure(`compare with ${target}`, error);
  }
}

/**
 * Publishes the history: a sorted, read-only copy of the whole live database that atomically
 * replaces the one at `target`. Readers that have the old copy open keep it; new readers get the
 * new one. Only the holder of the live database publishes, so the unfinished copy has a fixed name
 * and a stale one can be removed.
 *
 * At the cost of what changed: the days and ledgers that differ are replaced in a copy of what was
 * published last. Now and then, when nothing usable was published, and where that is asked for,
 * everything is written again.
 *
 * Returns the size of the copy in bytes. After a `StorageError`, the previous copy remains.
 */
export const publish = (warehouse: Warehouse, target: string, isWhole = false): Promise<number> =>
  replacing(warehouse, target, async (unfinished) => {
    if (!isWhole && (await update(warehouse, target, unfinished))) return;
    await removeDatabase(unfinished);
    await createEmpty(unfinished);
    await attached(warehouse, unfinished, fill);
  });

/** Replaces what changed in a copy of `target`; false where everything is to be written. */
async function update(warehouse: Warehouse, target: string, unfinished: string): Promise<boolean> {
  const changed = async (connection: DuckDBConnection) => {
    await expectSameVersion(connection);
    await connection.run(CHANGED_DAYS);
    const [whole] = await queryRows(connection, MUST_BE_WHOLE, z.object({ must_be_whole: z.boolean() }));
    return whole?.must_be_whole === false;
  };
  try {
    if (!(await attached(warehouse, target, changed, 'READ_ONLY'))) return false;
  } catch (error) {
    if (error instanceof UnusableError) return false;
    throw error;
  }
  // Copying the live file like this would release DuckDB's lock on it. The published file is never locked.
  await copyFile(target, unfinished, constants.COPYFILE_FICLONE);
  await chmod(unfinished, 0o600);
  // A macro works for one file only, so the copy gets its own.
  await changeDatabase(unfinished, describe);
  await attached(warehouse, unfinished, bringUpToDate);
  return true;
}

/** Writes a file with `write`, and atomically replaces `target` with it. Returns its size. */
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
    throw storageFailure(`publish the history to ${target} (the previous one was kept)`, cause);
  }
}

/** The publication is missing, damaged or from another version. */
class UnusableError extends Error {}

/**
 * Runs `work` while a file is attached to the live database as `publication`. Throws an
 * `UnusableError` if it cannot be attached.
 */
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

/** Applies the same migrations and views as the live file, so that the copy is documented and can be restored. */
const createEmpty = (path: string): Promise<void> =>
  changeDatabase(path, (connection) => migrate(connection, path));

/** Copies every table, sorted: ledgers by their columns from the left, views one quarter at a time to save memory. */
async function fill(connection: DuckDBConnection): Promise<void> {
  const ledgers = (await tablesOf(readerOf(connection), 'publication')).filter(
    (name) => name !== 'page_views',
  );
  const copies = ledgers.map((name) => `INSERT INTO publication.${name} FROM main.${name} ORDER BY ALL`);
  await inTransaction(connection, async () => {
    await connection.run(copies.join(';'));
  });
  const quarters = await queryRows(
    connection,
    QUARTERS,
    z.object({ project: z.string(), quarter: dayColumn }),
  );
  for (const quarter of quarters) await runStatement(connection, INSERT_QUARTER, quarter);
  await connection.run('CHECKPOINT publication');
}

async function expectSameVersion(connection: DuckDBConnection): Promise<void> {
  const [version] = await queryRows(connection, SAME_VERSION, z.object({ is_same: z.boolean() }));
  if (version?.is_same !== true) throw new UnusableError('another version wrote it');
}

/** Replaces the days that `update` found and the ledgers that differ. */
async function bringUpToDate(connection: DuckDBConnection): Promise<void> {
  const reader = readerOf(connection);
  const ledgers = await tableDigests(reader, 'main', { page_views: 'all' });
  const published = await tableDigests(reader, 'publication', { page_views: 'all' });
  await inTransaction(connection, async () => {
    await connection.run(DELETE_CHANGED_DAYS);
    await connection.run(INSERT_CHANGED_DAYS);
    for (const [name, digest] of Object.entries(ledgers))
      if (digest !== published[name])
        await connection.run(
          `DELETE FROM publication.${name}; INSERT INTO publication.${name} FROM main.${name} ORDER BY ALL`,
        );
  });
  await connection.run('CHECKPOINT publication');
}

const readerOf = (connection: DuckDBConnection): Reader => ({
  query: (sql, row, parameters) => queryRows(connection, sql, row, parameters),
});
