import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, constants, copyFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { READ_ONLY, syncToDisk } from '../files.js';
import { AttachError, databaseOf, identifier, whileAttached, whileUsing, writeAttached } from './duckdb.js';
import { isOfDamage, storageFailure } from '../storage.js';
import { logOf, removeDatabase } from './live-file.js';
import { describeCopy } from './schema.js';
import { storeSavedState } from './saved-state.js';
import type { SavedState } from '../state/saved.js';
import { dayColumn, inTransaction, queryRows, readerOf, readSql, runStatement } from './query.js';
import type { Warehouse } from './warehouse.js';
import { tableDigests, visibleState } from './digests.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const CHANGED_DAYS = statement('changed-days');
const DELETE_CHANGED_DAYS = statement('delete-changed-days');
const INSERT_CHANGED_DAYS = statement('insert-changed-days');
const MUST_BE_WHOLE = statement('must-be-whole');
const SMALL_TABLES = statement('small-tables');
const PARTS = statement('parts');
const INSERT_PART = statement('insert-part');
const SAME_VERSION = statement('same-version');

/** Whether readers would see no difference between the live database and the file published from it. */
export async function isPublished(warehouse: Warehouse, target: string, now: Date): Promise<boolean> {
  try {
    return await withTargetAttached(warehouse, target, async (connection) => {
      const reader = readerOf(connection);
      const live = await visibleState(reader, 'main', now);
      return isDeepStrictEqual(live, await visibleState(reader, 'publication', now));
    });
  } catch (error) {
    throw storageFailure(`compare with ${target}`, error);
  }
}

interface PublicationOptions {
  /** Whether to write everything again. */
  readonly isWhole?: boolean;
  /** The state that the history is to carry, which makes it a backup of both. */
  readonly state?: SavedState;
}

/**
 * Publishes the history: a sorted, read-only copy of the whole live database that atomically
 * replaces the one at `target`. Readers that have the old copy open keep it; new readers get the
 * new one. Only the holder of the live database publishes, so the unfinished copy has a fixed name
 * and a stale one can be removed.
 *
 * The cost depends on what changed: the days and small tables that differ are replaced in a copy of the
 * last publication. Occasionally, on request, and if there is no usable publication, everything is
 * written: first the live file with its rows sorted, which folds its log, and then a copy of it.
 *
 * Returns the size of the copy in bytes. After a `StorageError`, the previous copy remains.
 */
export async function publish(
  warehouse: Warehouse,
  target: string,
  { isWhole = false, state }: PublicationOptions = {},
): Promise<number> {
  const unfinished = `${target}.publishing`;
  try {
    await removeDatabase(unfinished);
    const isUpdate = !isWhole && (await withTargetAttached(warehouse, target, canBeUpdated));
    // DuckDB locks neither the last publication nor the new live file yet, so copying them releases no lock.
    const copy = (file: string) => copyFile(file, unfinished, constants.COPYFILE_FICLONE);
    if (isUpdate) await copy(target);
    else await warehouse.rewrite(copySorted, copy);
    await chmod(unfinished, 0o600);
    await warehouse.exclusive((connection) =>
      writeAttached(connection, unfinished, 'publication', async () => {
        await whileUsing(connection, 'publication', async () => {
          await describeCopy(connection);
          if (state !== undefined) await storeSavedState(connection, state);
        });
        if (isUpdate) await update(connection);
      }),
    );
    await chmod(unfinished, READ_ONLY);
    await syncToDisk(unfinished);
    await rm(logOf(target), { force: true });
    await rename(unfinished, target);
    await syncToDisk(dirname(target));
    // Whatever is in its place, readers would meet it: better that this fails.
    await warehouse.exclusive((connection) => whileAttached(connection, target, 'publication', NOTHING));
    return (await stat(target)).size;
  } catch (cause) {
    await removeDatabase(unfinished).catch(() => undefined);
    // A damaged publication is replaced; the live database may be sound.
    if (!isWhole && isOfDamage(cause))
      return publish(warehouse, target, { isWhole: true, ...(state && { state }) });
    warehouse.noteFailure(cause);
    throw storageFailure(`publish the history to ${target} (the previous one was kept)`, cause);
  }
}

const NOTHING = () => Promise.resolve();

/** Runs `compare` with the published file attached as `publication`; false if it is missing, unusable or from another version. */
const withTargetAttached = (
  warehouse: Warehouse,
  target: string,
  compare: (connection: DuckDBConnection) => Promise<boolean>,
): Promise<boolean> =>
  warehouse.exclusive(async (connection) => {
    try {
      return await whileAttached(connection, target, 'publication', async () => {
        const [version] = await queryRows(connection, SAME_VERSION, z.object({ is_same: z.boolean() }));
        return version?.is_same === true && (await compare(connection));
      });
    } catch (error) {
      if (error instanceof AttachError || isOfDamage(error)) return false;
      throw error;
    }
  });

/** Finds the days that changed; false if everything is to be written again. */
async function canBeUpdated(connection: DuckDBConnection): Promise<boolean> {
  await connection.run(CHANGED_DAYS);
  const [whole] = await queryRows(connection, MUST_BE_WHOLE, z.object({ must_be_whole: z.boolean() }));
  return whole?.must_be_whole === false;
}

/** The rows that DuckDB writes together. */
const ROW_GROUP = 122_880;

/** Sorting and inserting fewer rows takes about as long. */
const PART_ROWS = 2 * ROW_GROUP;

/**
 * Fills the empty database `next` with the tables, views and comments of the live one, and its rows, sorted: small tables by
 * their columns from the left, views by quarter, page and day, in parts to save memory.
 */
async function copySorted(connection: DuckDBConnection): Promise<void> {
  const live = await databaseOf(connection);
  await connection.run(`COPY FROM DATABASE ${live} TO next (SCHEMA)`);
  const tables = await queryRows(connection, SMALL_TABLES, z.object({ name: z.string() }));
  const copies = tables.map(({ name }) => insertSorted(name, live, 'next'));
  await inTransaction(connection, async () => {
    await connection.run(copies.join(';'));
  });
  const parts = await queryRows(
    connection,
    PARTS,
    z.object({ project: z.string(), first: dayColumn, last: dayColumn }),
    { rows: PART_ROWS },
  );
  let unwritten = 0;
  for (const part of parts) {
    unwritten += (await runStatement(connection, INSERT_PART, part)).rowsChanged;
    if (unwritten < ROW_GROUP) continue;
    // The rows that do not fill a row group would stay in memory until the end.
    await connection.run('CHECKPOINT next');
    unwritten = 0;
  }
}

/** Replaces the days that `canBeUpdated` found and the small tables that differ. */
async function update(connection: DuckDBConnection): Promise<void> {
  const reader = readerOf(connection);
  const small = await tableDigests(reader, 'main', { page_views: null });
  const published = await tableDigests(reader, 'publication', { page_views: null });
  const changed = await queryRows(connection, 'FROM changed_days LIMIT 1', z.object({}));
  await inTransaction(connection, async () => {
    // Without any, DuckDB would read all rows.
    if (changed.length > 0) {
      await connection.run(DELETE_CHANGED_DAYS);
      await connection.run(INSERT_CHANGED_DAYS);
    }
    for (const [name, digest] of Object.entries(small))
      if (digest !== published[name])
        await connection.run(
          `DELETE FROM publication.${identifier(name)}; ${insertSorted(identifier(name), 'main', 'publication')}`,
        );
  });
}

/** Copies a table's rows, sorted by its columns from the left. */
const insertSorted = (table: string, from: string, into: string): string =>
  `INSERT INTO ${into}.${table} FROM ${from}.${table} ORDER BY ALL`;
