import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { access } from 'node:fs/promises';
import type { z } from 'zod';
import { messageOf, StorageError } from '../errors.js';
import { exists } from '../files.js';
import { openSafely } from './instance.js';
import { readyOf } from './live-file.js';
import { isDescribed } from './migrate.js';
import { type Parameters, queryRows, type Reader } from './query.js';
import { isOfDamage } from './storage-failure.js';

/** The published history, open for reading only: never blocked by the export, and never in its way. */
export class History implements Reader {
  constructor(
    private readonly path: string,
    private readonly instance: DuckDBInstance,
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

  /** Another connection to the same file, for queries beside those of this one. It closes on its own. */
  async beside(): Promise<History> {
    const connection = await this.instance.connect();
    return new History(this.path, this.instance, connection, () => {
      connection.closeSync();
    });
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
    return new History(path, instance, connection, () => {
      connection.closeSync();
      instance.closeSync();
    });
  } catch (cause) {
    throw unreadable('open', path, cause);
  }
}

/**
 * As `openHistory`, for the queries of this version. Throws a `StorageError` when another version published the
 * history: it may lack what they read.
 */
export async function openOwnHistory(
  path: string,
  limits?: Readonly<Record<string, string>>,
): Promise<History> {
  const history = await openHistory(path, undefined, limits);
  try {
    if (await isDescribed(history.connection)) return history;
  } catch (error) {
    history.close();
    throw history.explained(error);
  }
  history.close();
  throw new StorageError(
    `Another version of Readership published the history ${path}. Publish it again: readership publish`,
  );
}

/**
 * Opens the live database, where no process holds it and this version wrote it, or else the published history; undefined
 * before the first export. Not for a process that holds the live database: that would drop its lock.
 */
export async function openNewest(liveFile: string, historyFile: string): Promise<History | undefined> {
  const isLive = (await exists(liveFile)) && !(await exists(readyOf(liveFile)));
  const live = isLive ? await openOwnHistory(liveFile).catch(() => undefined) : undefined;
  return live ?? ((await exists(historyFile)) ? openOwnHistory(historyFile) : undefined);
}

const unreadable = (doing: 'open' | 'read', path: string, cause: unknown): StorageError =>
  new StorageError(
    `Cannot ${doing} the published history ${path}: ${messageOf(cause)}. Write it again: readership publish`,
    { cause },
  );
