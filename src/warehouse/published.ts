import type { DuckDBConnection } from '@duckdb/node-api';
import { access, chmod, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { messageOf, StorageError } from '../errors.js';
import { syncToDisk } from '../files.js';
import { openForWriting, openSafely, quoted } from './instance.js';
import { migrate } from './migrate.js';
import { type Parameters, queryRows, type Reader } from './query.js';
import { isOfDamage, storageFailure } from './storage-failure.js';
import type { Warehouse } from './warehouse.js';

/**
 * Publishes the history: a sorted, read-only copy of the whole live database that takes the place of the one at
 * `target` in one step. Readers who have the old one open keep it; whoever opens it next gets the new one. The holder
 * of the live database is the only publisher, so the unfinished copy has a fixed name and a stale one can go.
 *
 * Returns the size of the copy in bytes. Throws a `StorageError`; the copy published before then still stands.
 */
export async function publish(warehouse: Warehouse, target: string): Promise<number> {
  const unfinished = `${target}.publishing`;
  try {
    await removeCopy(unfinished);
    await createEmpty(unfinished);
    await fill(warehouse, unfinished);
    await chmod(unfinished, 0o444);
    await syncToDisk(unfinished);
    await rename(unfinished, target);
    await syncToDisk(dirname(target));
    return (await stat(target)).size;
  } catch (cause) {
    await removeCopy(unfinished).catch(() => undefined);
    warehouse.noteFailure(cause);
    const doing = `publish the history to ${target} (the one published before still stands)`;
    throw storageFailure(doing, cause);
  }
}

async function removeCopy(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(`${path}.wal`, { force: true });
}

/** The same migrations and views as the live file, so that the copy explains itself and can be restored from. */
async function createEmpty(path: string): Promise<void> {
  const instance = await openForWriting(path);
  const connection = await instance.connect();
  try {
    await migrate(connection, path);
    await connection.run('CHECKPOINT');
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

const tableSchema = z.object({ name: z.string() });

/** The days of a page in a quarter lie together: asking for one page then reads little, and so does asking for a week of all. */
const PAGE_VIEWS_ORDER = "project, date_trunc('quarter', day), path, day";

/** Every table, sorted: the ledgers by their columns from the left. */
function fill(warehouse: Warehouse, path: string): Promise<void> {
  return warehouse.exclusive(async (connection) => {
    await connection.run(`ATTACH ${quoted(path)} AS publication`);
    try {
      const tables = await queryRows(
        connection,
        "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = 'publication' AND table_name <> 'schema_version'",
        tableSchema,
      );
      for (const { name } of tables) {
        const order = name === 'page_views' ? PAGE_VIEWS_ORDER : 'ALL';
        await connection.run(`INSERT INTO publication.${name} FROM main.${name} ORDER BY ${order}`);
      }
      await connection.run('CHECKPOINT publication');
    } finally {
      await connection.run('DETACH publication');
    }
  });
}

/** The published history, open for reading only: never blocked by the export, and never in its way. */
export class History implements Reader {
  constructor(
    private readonly path: string,
    readonly connection: DuckDBConnection,
    private readonly release: () => void,
  ) {}

  async query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    try {
      return await queryRows(this.connection, sql, row, parameters);
    } catch (error) {
      throw this.explained(error);
    }
  }

  /** What was thrown while it was read; a `StorageError` when the file is damaged. */
  explained(error: unknown): unknown {
    return isOfDamage(error) ? unreadable('read', this.path, error) : error;
  }

  close(): void {
    this.release();
  }
}

/**
 * Opens the published history at `path`; its queries may write to the file `writable`, where one is given, and to no
 * other. Throws a `StorageError` when nothing was published yet.
 */
export async function openHistory(
  path: string,
  writable?: string,
  limits?: Readonly<Record<string, string>>,
): Promise<History> {
  try {
    await access(path);
  } catch (cause) {
    throw new StorageError(
      `There is no published history yet (${path}). Load it first: readership export, or readership run --sandbox for the sandbox's. ` +
        `After an interrupted export: readership publish`,
      { cause },
    );
  }
  try {
    const instance = await openSafely(path, writable, limits);
    const connection = await instance.connect();
    return new History(path, connection, () => {
      connection.closeSync();
      instance.closeSync();
    });
  } catch (cause) {
    throw unreadable('open', path, cause);
  }
}

const unreadable = (doing: 'open' | 'read', path: string, cause: unknown): StorageError =>
  new StorageError(
    `Cannot ${doing} the published history ${path}: ${messageOf(cause)}. Write it again: readership publish`,
    { cause },
  );
