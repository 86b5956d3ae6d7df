import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { z } from 'zod';
import { codeOf, messageOf, StorageError } from '../errors.js';
import { exists, expectDirectory } from '../files.js';
import { openSafely } from './duckdb.js';
import { isOfDamage } from '../storage.js';
import { readyOf } from './live-file.js';
import { isDescribed, schemaVersion } from './migrate.js';
import { type Parameters, queryRows, type Reader } from './query.js';

/** The published history, open read-only: it neither blocks the export nor is blocked by it. */
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

  /** Converts an error thrown while reading; a `StorageError` if the file is damaged. */
  explained(error: unknown): unknown {
    return isOfDamage(error) ? unreadable('read', this.path, error) : error;
  }

  /** Another connection to the same file, for concurrent queries. It must be closed separately. */
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
 * Opens the published history at `path`. Its queries can write only to the file `writable`, if given. Throws a
 * `StorageError` if nothing was published yet.
 */
export async function openHistory(
  path: string,
  writable?: string,
  limits?: Readonly<Record<string, string>>,
): Promise<History> {
  try {
    await access(path);
  } catch (cause) {
    await expectDirectory(dirname(path));
    if (codeOf(cause) !== 'ENOENT' && codeOf(cause) !== 'ENOTDIR')
      throw new StorageError(
        `Cannot read the published history ${path}: ${messageOf(cause)}. Run this as the user that exports, or give this user access to its directory.`,
        { cause },
      );
    throw new StorageError(
      `There is no published history yet (${path}). Load it first: readership export, or readership run --sandbox to try the sandbox. ` +
        `After an interrupted export: readership publish`,
      { cause },
    );
  }
  try {
    const instance = await openSafely(path, writable, limits);
    const connection = await instance.connect();
    const history = new History(path, instance, connection, () => {
      connection.closeSync();
      instance.closeSync();
    });
    // Throws for one that a newer version wrote.
    await schemaVersion(connection, path).catch((error: unknown) => {
      history.close();
      throw error;
    });
    return history;
  } catch (cause) {
    throw cause instanceof StorageError ? cause : unreadable('open', path, cause);
  }
}

/**
 * As `openHistory`, for this version's own queries. Throws a `StorageError` if another version published the history,
 * which may lack what they read.
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
 * Opens the live database if no process holds it and this version wrote it, otherwise the published
 * history; undefined before the first export. Must not be called by a process that holds the live
 * database, because it would release the lock.
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
