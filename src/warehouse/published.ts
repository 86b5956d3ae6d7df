import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { z } from 'zod';
import { codeOf, messageOf, OtherVersionError, StorageError } from '../errors.js';
import { exists, expectDirectory } from '../files.js';
import { literal } from './duckdb.js';
import { isOfDamage } from '../storage.js';
import { readyOf } from './live-file.js';
import { hasSchema, isDescribed, SchemaError } from './schema.js';
import { type Parameters, queryRows, type Reader } from './query.js';

/** The published history, open read-only: it neither blocks the export nor is blocked by it. */
export class History implements Reader {
  private constructor(
    private readonly path: string,
    private readonly instance: DuckDBInstance,
    readonly connection: DuckDBConnection,
    private readonly owns: 'file' | 'connection',
  ) {}

  /**
   * Opens a database file so that no query can touch anything else: read only, no files but `writable`, no network, no
   * extensions, and no setting that would lift this again. `check` comes first.
   */
  static async open(
    path: string,
    { writable, limits = {} }: QueryRights,
    check: (connection: DuckDBConnection) => Promise<unknown>,
  ): Promise<History> {
    const instance = await DuckDBInstance.create(path, {
      ...limits,
      access_mode: 'READ_ONLY',
      autoload_known_extensions: 'false',
      autoinstall_known_extensions: 'false',
    });
    const history = new History(path, instance, await instance.connect(), 'file');
    try {
      await check(history.connection);
      const allowed = writable === undefined ? '' : `SET allowed_paths = [${literal(writable)}];`;
      await history.connection.run(
        `${allowed} SET enable_external_access = false; SET lock_configuration = true`,
      );
      return history;
    } catch (error) {
      history.close();
      throw error;
    }
  }

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
    return new History(this.path, this.instance, await this.instance.connect(), 'connection');
  }

  close(): void {
    this.connection.closeSync();
    if (this.owns === 'file') this.instance.closeSync();
  }
}

/** What queries may do beyond reading. */
export interface QueryRights {
  /** A file that they can write to. */
  readonly writable?: string | undefined;
  /** Settings of DuckDB that limit it further. */
  readonly limits?: Readonly<Record<string, string>>;
}

/**
 * Opens the published history at `path`. Throws a `StorageError` if nothing was published yet, or by another version, or
 * if it fails the `check`.
 */
export async function openHistory(
  path: string,
  rights: QueryRights = {},
  check: (connection: DuckDBConnection, path: string) => Promise<unknown> = hasSchema,
): Promise<History> {
  await access(path).catch(async (cause: unknown) => {
    await expectDirectory(dirname(path));
    throw new StorageError(
      codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ENOTDIR'
        ? `There is no published history yet (${path}). Load it first: readership export, or readership run --sandbox to try the sandbox. ` +
            `After an interrupted export: readership publish`
        : `Cannot read the published history ${path}: ${messageOf(cause)}. Run this as the user that exports, or give this user access to its directory.`,
      { cause },
    );
  });
  try {
    return await History.open(path, rights, (connection) => check(connection, path));
  } catch (cause) {
    throw cause instanceof StorageError ? cause : unreadable('open', path, cause);
  }
}

/** Throws a `SchemaError` if a version with other tables published the history. What else is wrong with it, is not said. */
export async function expectSchema(path: string): Promise<void> {
  const history = await openHistory(path).catch((error: unknown) => {
    if (error instanceof SchemaError) throw error;
  });
  history?.close();
}

/**
 * As `openHistory`, for this version's own queries. Throws a `StorageError` if another version published the history,
 * which may lack what they read.
 */
export const openOwnHistory = (path: string, limits: QueryRights['limits'] = {}): Promise<History> =>
  openHistory(path, { limits }, async (connection) => {
    await hasSchema(connection, path);
    if (!(await isDescribed(connection)))
      throw new OtherVersionError(
        `Another version of Readership published the history ${path}. Publish it again: readership publish`,
      );
  });

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
