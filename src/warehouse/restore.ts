import type { DuckDBConnection } from '@duckdb/node-api';
import { copyFile, link, rename, rmdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { messageOf, ReadershipError, StorageError } from '../errors.js';
import { exists, expectDirectory, ignoreMissing, makeDirectory } from '../files.js';
import { databaseOf, whileAttached } from './duckdb.js';
import { isOfDamage, machineAdvice, storageFailure } from '../storage.js';
import { changeDatabase, type LiveFile, logOf, removeCopies, removeDatabase } from './live-file.js';
import { describe, hasSchema } from './schema.js';
import { BehindError, holdLiveFile, type HoldOptions, openWarehouse } from './open.js';
import { tableDigests } from './digests.js';
import { readSavedState } from './saved-state.js';
import type { SavedState } from '../state/saved.js';
import { queryRows } from './query.js';
import type { Warehouse } from './warehouse.js';

export interface Restoration {
  readonly liveFile: string;
  readonly historyFile: string;
  /** A database to restore from; by default the published history. */
  readonly from: string | undefined;
}

export interface Restored {
  readonly liveFile: string;
  readonly source: string;
  /** The new location of the previous live database; undefined if there was none. */
  readonly aside: string | undefined;
  /** The new location of the published history, if it was newer than what was restored. */
  readonly historyAside: string | undefined;
}

const OTHER_FILE = 'Nothing was changed. Use another file: readership restore --from FILE';

/**
 * Atomically replaces the live database with the state of `from`, or the newest complete state.
 * Returns undefined if the live database already has that state. The previous file is kept next to
 * it, under a name with the time. Creates the data directory. Throws a `StorageError`, with nothing
 * changed, if the source is missing, damaged, not a Readership database, or from another
 * version, and if the disk is full.
 */
export async function restore(
  { liveFile, historyFile, from }: Restoration,
  options: HoldOptions,
): Promise<Restored | undefined> {
  await expectDirectory(dirname(liveFile));
  if (from === undefined && (await isSound(liveFile, historyFile, options))) return undefined;
  const source = await expectSource({ liveFile, historyFile, from });
  const copy = `${liveFile}${COPY}-${process.pid}`;
  const stamp = options.now().toISOString().slice(0, 19).replaceAll(':', '-');
  const aside = await freeName(`${liveFile}.replaced-${stamp}`);
  const directory = dirname(liveFile);
  const made = await makeDirectory(directory);
  try {
    await writeCopy(copy, source);
    const file = await holdAndKeepAside(liveFile, aside, options);
    try {
      await file.replaceBy(copy);
      await removeCopies(liveFile, COPY);
    } finally {
      await file.close();
    }
  } catch (error) {
    await removeDatabase(copy).catch(() => undefined);
    if (made !== undefined) await removeEmpty(directory, made);
    throw error;
  }
  const isOlder = await isBehind(liveFile, historyFile, options);
  const historyAside = isOlder ? await freeName(`${historyFile}.replaced-${stamp}`) : undefined;
  if (historyAside !== undefined) await rename(historyFile, historyAside);
  return { liveFile, source, aside: (await exists(aside)) ? aside : undefined, historyAside };
}

/** The file to restore from. Throws a `StorageError` if it cannot be one. */
async function expectSource({ liveFile, historyFile, from }: Restoration): Promise<string> {
  const source = resolve(from ?? historyFile);
  if (source === resolve(liveFile))
    throw new StorageError(`${source} is the live database itself. ${OTHER_FILE}`);
  if (!(await exists(source)))
    throw new StorageError(
      `Found no ${source} to restore from. ${OTHER_FILE}` +
        (from === undefined ? `\nOr, to start over, move ${liveFile} and its log away.` : ''),
    );
  if ((await stat(source)).isDirectory())
    throw new StorageError(`${source} is a directory, not a Readership database. ${OTHER_FILE}`);
  return source;
}

/** The state that the file to restore from carries; undefined if it carries none. Throws as `restore` does. */
export async function stateToRestore(restoration: Restoration): Promise<SavedState | undefined> {
  const source = await expectSource(restoration);
  try {
    return await changeDatabase(':memory:', (connection) => readSavedState(connection, source));
  } catch (cause) {
    throw notRestored(source, cause);
  }
}

/** Removes a new directory and those around it, up to the first that was made, as far as they are empty. */
export async function removeEmpty(directory: string, first: string): Promise<void> {
  await rmdir(directory).catch(() => undefined);
  if (directory !== first) await removeEmpty(dirname(directory), first);
}

/** Ends the name of a copy that is being restored, before the process id. */
const COPY = '.restoring';

/**
 * Whether the live database opens, is not behind, and can be read completely. Throws for problems
 * that restoring would not fix.
 */
async function isSound(liveFile: string, historyFile: string, options: HoldOptions): Promise<boolean> {
  if (!(await exists(liveFile))) return false;
  try {
    // A file with damaged pages may still open, so everything is read.
    return !(await isBehind(liveFile, historyFile, options, (warehouse) => tableDigests(warehouse, 'main')));
  } catch (error) {
    if (error instanceof StorageError && isOfDamage(error.cause)) return false;
    throw error;
  }
}

async function isBehind(
  liveFile: string,
  historyFile: string,
  options: HoldOptions,
  work: (warehouse: Warehouse) => Promise<unknown> = () => Promise.resolve(),
): Promise<boolean> {
  try {
    const warehouse = await openWarehouse(liveFile, { ...options, historyFile });
    await work(warehouse).finally(() => warehouse.close());
    return false;
  } catch (error) {
    if (error instanceof BehindError) return true;
    throw error;
  }
}

/** Copies the database at `source` into a new file of this version. */
async function writeCopy(copy: string, source: string): Promise<void> {
  await removeDatabase(copy);
  try {
    await changeDatabase(copy, async (connection) => {
      await whileAttached(connection, source, 'source', async () => {
        await expectTables(connection, source);
        await connection.run(`COPY FROM DATABASE source TO ${await databaseOf(connection)}`);
      });
      await hasSchema(connection, source);
      await describe(connection);
      // The state has a file of its own.
      await connection.run('DROP SCHEMA IF EXISTS internal CASCADE');
    });
  } catch (cause) {
    throw notRestored(source, cause);
  }
}

function notRestored(source: string, cause: unknown): unknown {
  if (cause instanceof ReadershipError) return cause;
  if (machineAdvice(cause) !== undefined) return storageFailure(`restore from ${source}`, cause);
  return new StorageError(`Cannot restore from ${source}: ${messageOf(cause)}\n${OTHER_FILE}`, { cause });
}

async function expectTables(connection: DuckDBConnection, source: string): Promise<void> {
  const tables = await queryRows(
    connection,
    `SELECT table_name FROM duckdb_tables() WHERE database_name = 'source' AND table_name IN ('schema_version', 'page_views', 'day_loads')`,
    z.object({}),
  );
  if (tables.length < 3) throw new StorageError(`${source} is not a Readership database. ${OTHER_FILE}`);
}

/**
 * Locks the live file, and keeps its current contents and log under the name `aside`. A file that
 * cannot be opened is moved there, because no process can hold it. One that opens stays in place,
 * so that a kill leaves it there.
 */
async function holdAndKeepAside(liveFile: string, aside: string, options: HoldOptions): Promise<LiveFile> {
  if (await exists(liveFile))
    try {
      const file = await holdLiveFile(liveFile, options);
      await keep(liveFile, aside);
      await keep(logOf(liveFile), logOf(aside));
      return file;
    } catch (error) {
      if (!(error instanceof StorageError && isOfDamage(error.cause))) throw error;
    }
  await rename(logOf(liveFile), logOf(aside)).catch(ignoreMissing);
  await rename(liveFile, aside).catch(ignoreMissing);
  return holdLiveFile(liveFile, options);
}

/** A hard link to a file; a copy if the file system does not support links. */
async function keep(file: string, aside: string): Promise<void> {
  if (await exists(file)) await link(file, aside).catch(() => copyFile(file, aside));
}

async function freeName(wanted: string): Promise<string> {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(await exists(name)) && !(await exists(logOf(name)))) return name;
  }
}
