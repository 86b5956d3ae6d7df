import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, constants, copyFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { exists, nextOf, READ_ONLY, removeStarting, syncToDisk } from '../files.js';
import { storageFailure } from '../storage.js';
import { changeDatabase, inTransaction, literal, queryRows, runStatement } from './duckdb.js';
import { EMPTY_HISTORY, expectFile, logOf } from './history.js';
import type { Day } from '../day.js';
import { dayColumn, readSql } from '../columns.js';

export interface NextVersion {
  /** Makes the changes in a copy, inside a transaction. */
  readonly change: (connection: DuckDBConnection) => Promise<void>;
  /** Called before, outside the transaction, such as to attach a file. */
  readonly prepare?: (connection: DuckDBConnection) => Promise<void>;
  /** Whether to write all rows again, sorted, and not to copy the file. */
  readonly isRewritten?: boolean;
  /** The history that it is a copy of; by default the last version. */
  readonly source?: string;
  /** Called before it takes the place of the last version: it throws if it must not, such as when another process is the worker. */
  readonly beforeRename: () => void | Promise<void>;
  readonly onWarning?: ((words: string) => void) | undefined;
}

/**
 * Replaces the history at `path`, which is never changed in place, by its next version. A reader keeps the version that
 * it opened. After a `StorageError`, the last version is still there.
 */
export async function writeNext(path: string, version: NextVersion): Promise<void> {
  const next = `${nextOf(path)}${process.pid}`;
  try {
    await expectFile(path);
    await removeStarting(nextOf(path));
    const isKnown = await exists(path);
    const isRewritten = isKnown && version.isRewritten === true;
    const source = version.source ?? (isKnown && !isRewritten ? path : EMPTY_HISTORY);
    await copyFile(source, next, constants.COPYFILE_FICLONE);
    // A copy of a read-only file is read-only.
    await chmod(next, 0o600);
    await changeDatabase(next, async (connection) => {
      if (isRewritten) {
        await removeForeignLog(path, version.onWarning);
        await copySorted(connection, path);
      }
      await version.prepare?.(connection);
      await inTransaction(connection, () => version.change(connection));
    });
    await rm(logOf(next), { force: true });
    await chmod(next, READ_ONLY);
    await syncToDisk(next);
    await version.beforeRename();
    await removeForeignLog(path, version.onWarning);
    await rename(next, path);
    await syncToDisk(dirname(path));
  } catch (error) {
    await removeStarting(nextOf(path)).catch(() => undefined);
    throw error instanceof StorageError
      ? error
      : storageFailure(`write the next version of ${path} (the last one was kept)`, error);
  }
}

/** A program that opened the history for writing leaves a log, which readers would apply to every later version. */
export async function removeForeignLog(path: string, onWarning: NextVersion['onWarning']): Promise<void> {
  const log = logOf(path);
  if (!(await exists(log))) return;
  await rm(log, { force: true });
  onWarning?.(
    `Another program has written to the history, and left ${log}. It was removed: the history is only for reading.`,
  );
}

const QUARTERS = readSql(import.meta.url, 'statements/quarters.sql');
const COPY_QUARTER = readSql(import.meta.url, 'statements/copy-quarter.sql');

/** In smaller files, the order of rows does not matter. */
const MIN_ROWS = 2_000_000;

/** Rows that are inserted before they are written to the file, so that they do not fill the memory. */
const PART_ROWS = 500_000;

const sizeRow = z.object({ rows: z.int(), last: dayColumn.nullable() });
const BLOCKS =
  'SELECT free_blocks, used_blocks FROM pragma_database_size() WHERE database_name = current_database()';
const blocksRow = z.object({ free_blocks: z.int(), used_blocks: z.int() });

/**
 * Whether the next version of the history on this connection is to be written with all rows sorted: with the first load of
 * a quarter, if it is large, and if more of the file is free than used.
 */
export async function isToRewrite(connection: DuckDBConnection, loaded: readonly Day[]): Promise<boolean> {
  const [blocks] = await queryRows(connection, BLOCKS, blocksRow);
  if (blocks !== undefined && blocks.free_blocks > blocks.used_blocks) return true;
  const sql = 'SELECT coalesce(sum(pages), 0)::BIGINT AS rows, max(day) AS last FROM days';
  const [size] = await queryRows(connection, sql, sizeRow);
  if (size === undefined || size.last === null || size.rows < MIN_ROWS) return false;
  const known = quarterOf(size.last);
  return loaded.some((day) => quarterOf(day) > known);
}

/** A name of a quarter, in the order of time. */
const quarterOf = (day: Day): string => `${day.slice(0, 4)}-${Math.ceil(Number(day.slice(5, 7)) / 3)}`;

/** The state that a version carries may know more than this workspace's: it is kept for `restore`. */
const COPIED = [
  'internal.projects',
  'internal.paths',
  'internal.saved_state',
  'main.days',
  'main.restatements',
];

/** Copies the rows of the history at `path` into the empty current database: those of each quarter by path. */
async function copySorted(connection: DuckDBConnection, path: string): Promise<void> {
  await connection.run(`ATTACH ${literal(path)} AS last (READ_ONLY)`);
  try {
    for (const table of COPIED) await connection.run(`INSERT INTO ${table} FROM last.${table}`);
    const row = z.object({ project_id: z.int(), first: dayColumn, rows: z.int() });
    let unwritten = 0;
    for (const { rows, ...quarter } of await queryRows(connection, QUARTERS, row)) {
      await runStatement(connection, COPY_QUARTER, quarter);
      unwritten += rows;
      if (unwritten < PART_ROWS) continue;
      await connection.run('CHECKPOINT');
      unwritten = 0;
    }
  } finally {
    await connection.run('DETACH last');
  }
}
