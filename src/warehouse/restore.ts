import type { DuckDBConnection } from '@duckdb/node-api';
import { copyFile, link, mkdir, readdir, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { messageOf, StorageError } from '../errors.js';
import { exists, ignoreMissing } from '../files.js';
import { BehindError } from './behind.js';
import { expectJournalOf } from './effects.js';
import { quoted } from './instance.js';
import { changeDatabase, databaseOf, logOf, removeDatabase } from './live-file.js';
import { migrate } from './migrate.js';
import { type HeldFile, holdLiveFile, type HoldOptions, openWarehouse } from './open.js';
import { queryRows } from './query.js';
import { isOfDamage } from './storage-failure.js';
import type { Warehouse } from './warehouse.js';

export interface Restoration {
  readonly liveFile: string;
  readonly historyFile: string;
  /** A database or a lake to restore from; the published history when there is none. */
  readonly from: string | LakeSource | undefined;
}

/** A lake to restore from, and what fills a new database at `path` from it. */
interface LakeSource {
  readonly location: string;
  readonly fill: (connection: DuckDBConnection, path: string) => Promise<void>;
}

export interface Restored {
  readonly source: string;
  /** Where the live database from before is now; undefined when there was none. */
  readonly aside: string | undefined;
  /** Where the published history is now, when it was newer than what was restored. */
  readonly historyAside: string | undefined;
}

const OTHER_FILE = 'Nothing was changed. Name another file: readership restore --from FILE';

/**
 * Puts the state of `from`, or the newest whole state, in the place of the live database, in one step; undefined when
 * the live database is that state already. What was there is kept beside it, under a name with the time. Throws a
 * `StorageError`, with nothing changed, when the source is missing, damaged, not Readership's, of a newer one, or of
 * another workspace than the effects journal.
 */
export async function restore(
  { liveFile, historyFile, from }: Restoration,
  options: HoldOptions,
): Promise<Restored | undefined> {
  if (from === undefined && (await isSound(liveFile, historyFile, options))) return undefined;
  const source = typeof from === 'object' ? from.location : resolve(from ?? historyFile);
  if (source === resolve(liveFile))
    throw new StorageError(`${source} is the live database itself. ${OTHER_FILE}`);
  if (typeof from !== 'object' && !(await exists(source)))
    throw new StorageError(
      `There is no ${source} to restore from. ${OTHER_FILE}` +
        (from === undefined ? `\nOr, to start over, move ${liveFile} and its log away.` : ''),
    );
  const copy = `${liveFile}${COPY}${process.pid}`;
  const stamp = options.now().toISOString().slice(0, 19).replaceAll(':', '-');
  const aside = await freeName(`${liveFile}.replaced-${stamp}`);
  try {
    if (typeof from === 'object') await copyLake(from, copy);
    else await copySource(source, copy);
    await expectOwnJournal(copy, source);
    const { file, release } = await holdAndKeepAside(liveFile, aside, options);
    try {
      await file.replaceBy(copy);
      await removeOldCopies(liveFile);
    } finally {
      await release();
    }
  } finally {
    await removeDatabase(copy).catch(() => undefined);
  }
  const isOlder = await isBehind(liveFile, historyFile, options);
  const historyAside = isOlder ? await freeName(`${historyFile}.replaced-${stamp}`) : undefined;
  if (historyAside !== undefined) await rename(historyFile, historyAside);
  return { source, aside: (await exists(aside)) ? aside : undefined, historyAside };
}

/** Before the process id, in the name of a copy that is being restored. */
const COPY = '.restoring-';

/** Whether the live database opens, is not behind, and can be read whole. Throws for what restoring would not put right. */
async function isSound(liveFile: string, historyFile: string, options: HoldOptions): Promise<boolean> {
  if (!(await exists(liveFile))) return false;
  try {
    return !(await isBehind(liveFile, historyFile, options, readAll));
  } catch (error) {
    if (error instanceof StorageError && isOfDamage(error.cause)) return false;
    throw error;
  }
}

async function isBehind(
  liveFile: string,
  historyFile: string,
  options: HoldOptions,
  work: (warehouse: Warehouse) => Promise<void> = () => Promise.resolve(),
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

/** Reads every value of every table: a file may open whose later pages are damaged. */
async function readAll(warehouse: Warehouse): Promise<void> {
  const nameRow = z.object({ name: z.string() });
  for (const { name } of await warehouse.query('SELECT table_name AS name FROM duckdb_tables()', nameRow))
    await warehouse.query(`SELECT bit_xor(hash(row))::VARCHAR AS digest FROM ${name} AS row`, z.object({}));
}

/** Makes a new database of this version from a lake. */
async function copyLake({ fill }: LakeSource, copy: string): Promise<void> {
  await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
  await removeDatabase(copy);
  await changeDatabase(copy, async (connection) => {
    await migrate(connection, copy);
    await fill(connection, copy);
  });
}

/** Throws a `StorageError` when the effects journal beside the copy is that of another workspace. */
const expectOwnJournal = (copy: string, source: string): Promise<void> =>
  changeDatabase(copy, async (connection) => {
    for (const { id } of await queryRows(connection, 'FROM workspace', z.object({ id: z.string() })))
      await expectJournalOf(id, dirname(copy), source);
  });

/** Copies everything in the database at `source` into a new file of this version. */
async function copySource(source: string, copy: string): Promise<void> {
  await removeDatabase(copy);
  try {
    await changeDatabase(copy, async (connection) => {
      await connection.run(`ATTACH ${quoted(source)} AS source (READ_ONLY)`);
      await expectTables(connection, source);
      await connection.run(`COPY FROM DATABASE source TO ${await databaseOf(connection)}`);
      await connection.run('DETACH source');
    });
    await changeDatabase(copy, (connection) => migrate(connection, source));
  } catch (cause) {
    if (cause instanceof StorageError) throw cause;
    throw new StorageError(`Cannot restore from ${source}: ${messageOf(cause)}\n${OTHER_FILE}`, { cause });
  }
}

async function expectTables(connection: DuckDBConnection, source: string): Promise<void> {
  const tables = await queryRows(
    connection,
    `SELECT table_name FROM duckdb_tables() WHERE database_name = 'source' AND table_name IN ('schema_version', 'page_views', 'day_loads')`,
    z.object({}),
  );
  if (tables.length < 3) throw new StorageError(`${source} is not a database of Readership's. ${OTHER_FILE}`);
}

/**
 * Holds the live file, and keeps what it is now under the name `aside`, its log with it. A file that does not open is
 * moved there, as no process can hold it; one that opens stays in place, so that a kill leaves it there.
 */
async function holdAndKeepAside(liveFile: string, aside: string, options: HoldOptions): Promise<HeldFile> {
  if (!(await exists(liveFile))) return moveAsideAndHold(liveFile, aside, options);
  try {
    const held = await holdLiveFile(liveFile, options);
    await keep(liveFile, aside);
    await keep(logOf(liveFile), logOf(aside));
    return held;
  } catch (error) {
    if (!(error instanceof StorageError && isOfDamage(error.cause))) throw error;
    return moveAsideAndHold(liveFile, aside, options);
  }
}

async function moveAsideAndHold(liveFile: string, aside: string, options: HoldOptions): Promise<HeldFile> {
  await rename(logOf(liveFile), logOf(aside)).catch(ignoreMissing);
  await rename(liveFile, aside).catch(ignoreMissing);
  return holdLiveFile(liveFile, options);
}

/** A second name for a file; a copy where the file system has no such names. */
async function keep(file: string, aside: string): Promise<void> {
  if (await exists(file)) await link(file, aside).catch(() => copyFile(file, aside));
}

async function removeOldCopies(liveFile: string): Promise<void> {
  const directory = dirname(liveFile);
  for (const name of await readdir(directory))
    if (name.startsWith(`${basename(liveFile)}${COPY}`)) await removeDatabase(join(directory, name));
}

async function freeName(wanted: string): Promise<string> {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(await exists(name)) && !(await exists(logOf(name)))) return name;
  }
}
