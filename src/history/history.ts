import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from '@duckdb/node-api';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { codeOf, messageOf, OtherVersionError, StorageError } from '../errors.js';
import { exists, expectDirectory, ignoreMissing } from '../files.js';
import { isOfDamage, machineAdvice, queryError, storageFailure } from '../storage.js';
import { readStoredDays, type StoredDays } from './days.js';
import {
  type Columns,
  isOfSqlite,
  literal,
  NO_EXTENSIONS,
  type Parameters,
  queryRows,
  type Reader,
  runStatement,
} from './duckdb.js';
import { expectSchema, isDescribed, ofOtherProgram } from './schema.js';
import { CurrentTables, type StateTables } from './state-copy.js';

/** A history without any day, written by the build. */
export const EMPTY_HISTORY = fileURLToPath(new URL('empty.duckdb', import.meta.url));

/** What queries may do beyond reading. */
interface QueryRights {
  /** A file that they can write to. */
  readonly writable?: string | undefined;
  /** Settings of DuckDB that limit it further. */
  readonly limits?: Readonly<Record<string, string>>;
}

/** One version of the history, open for reading: it neither blocks the worker nor is blocked by it. */
export class History implements Reader, Columns {
  private constructor(
    readonly path: string,
    private readonly instance: DuckDBInstance,
    readonly connection: DuckDBConnection,
    private readonly tables: CurrentTables,
    private readonly owns: 'file' | 'connection',
  ) {}

  /**
   * Opens a file so that no query can touch anything else: read only, no files but `writable`, no network, no extensions,
   * and no setting that would lift this again. `check` comes first.
   */
  static async open(
    path: string,
    { writable, limits = {} }: QueryRights,
    check: (connection: DuckDBConnection) => Promise<unknown>,
  ): Promise<History> {
    const instance = await DuckDBInstance.create(path, {
      ...limits,
      ...NO_EXTENSIONS,
      access_mode: 'READ_ONLY',
    });
    const history = new History(path, instance, await instance.connect(), new CurrentTables(), 'file');
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

  async columns(sql: string, parameters: Parameters = {}): Promise<DuckDBValue[][]> {
    try {
      const result = await runStatement(this.connection, sql, parameters);
      return await result.getColumns();
    } catch (error) {
      throw this.explained(error);
    }
  }

  /** From now on, queries see these tables of the state instead of those that the file has. */
  show(tables: StateTables): Promise<void> {
    return this.tables.show(this.connection, tables);
  }

  /** Converts an error thrown while reading; a `StorageError` if the file is damaged. */
  explained(error: unknown): unknown {
    return isOfDamage(error) ? unreadable('read', this.path, error) : queryError(error);
  }

  /** Another connection to the same file, for concurrent queries. It must be closed separately. */
  async beside(): Promise<History> {
    const connection = await this.instance.connect();
    await this.tables.showOn(connection);
    return new History(this.path, this.instance, connection, this.tables, 'connection');
  }

  storedDays(project: string): Promise<StoredDays> {
    return readStoredDays(this, project);
  }

  close(): void {
    this.connection.closeSync();
    if (this.owns === 'file') this.instance.closeSync();
  }
}

/** Opens the history at `path`. Throws a `StorageError` if there is none, or if it fails the `check`. */
export async function openHistory(
  path: string,
  rights: QueryRights = {},
  check: (connection: DuckDBConnection, path: string) => Promise<unknown> = expectSchema,
): Promise<History> {
  await access(path).catch(async (cause: unknown) => {
    await expectDirectory(dirname(path));
    throw new StorageError(
      codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ENOTDIR'
        ? `There is no history yet (${path}). Load it first: readership export, or readership run --sandbox to try the sandbox.`
        : `Cannot read the history ${path}: ${messageOf(cause)}. Run this as the user that exports, or give this user access to its directory.`,
      { cause },
    );
  });
  await expectFile(path);
  await expectNoLog(path);
  try {
    return await History.open(path, rights, (connection) => check(connection, path));
  } catch (cause) {
    if (cause instanceof StorageError) throw cause;
    if (isOfSqlite(cause)) throw ofOtherProgram(path);
    if (machineAdvice(cause) !== undefined) throw storageFailure(`open the history ${path}`, cause);
    throw unreadable('open', path, cause);
  }
}

/**
 * As `openHistory`, for this version's own queries. Throws a `StorageError` if another version wrote the history, which may not
 * have what they read.
 */
export const openOwnHistory = (path: string, limits: QueryRights['limits'] = {}): Promise<History> =>
  openHistory(path, { limits }, async (connection) => {
    await expectSchema(connection, path);
    if (!(await isDescribed(connection)))
      throw new OtherVersionError(
        `Another version of Readership wrote the views of the history ${path}. Write them again: readership run`,
      );
  });

/** Throws a `StorageError` if something else is in the place of the history. */
export async function expectFile(path: string): Promise<void> {
  const found = await stat(path).catch(ignoreMissing);
  if (found?.isFile() === false)
    throw new StorageError(
      `The history ${path} is not a file. Nothing was changed. Move away what is there, then run the command again.`,
    );
}

/** The log that DuckDB keeps beside a file that it changes, as only other programs change a history. */
export const logOf = (path: string): string => `${path}.wal`;

/** Throws a `StorageError` if another program has left its log beside a history: DuckDB would answer with its changes. */
export async function expectNoLog(path: string): Promise<void> {
  if (await exists(logOf(path)))
    throw new StorageError(
      `Cannot open the history ${path}: another program has written to it, and left a log that does not belong to it. ` +
        `Close that program, then delete the log: rm '${logOf(path)}'`,
    );
}

const unreadable = (doing: 'open' | 'read', path: string, cause: unknown): StorageError =>
  new StorageError(
    `Cannot ${doing} the history ${path}: ${messageOf(cause).replace(/[.!]+$/, '')}.\n` +
      'Restore a backup of it: readership restore --from FILE\n' +
      'Without one, move it away, and load again what the platform still has: readership export --reload',
    { cause },
  );
