import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, ignoreMissing, syncToDisk } from '../files.js';
import { databaseOf, maxMemory, openForWriting, writeAttached } from './duckdb.js';

/**
 * On close, a log larger than this is folded into a new file, so that the next command opens
 * quickly. Rows take several times more space in a log than in a file, so four times the file is
 * allowed, up to twice this. While rows are loaded, the limit is four times this, because a
 * publication may fold the log anyway. Either limit is at least a quarter of the file.
 */
const MIN_LOG_BYTES = 16 * 1024 ** 2;
const maxLogBytes = (fileBytes: number, isAtEnd: boolean): number =>
  Math.max(
    isAtEnd ? Math.max(MIN_LOG_BYTES, Math.min(4 * fileBytes, 2 * MIN_LOG_BYTES)) : 4 * MIN_LOG_BYTES,
    fileBytes / 4,
  );

/**
 * The live database file, held open. The file never changes once it is in place: commits go to its
 * log (`.wal`), and `rewrite` folds both into a new file that replaces the old one. So a kill at
 * any write leaves either the old file and log or the new file. See
 * docs/decisions/024-the-live-file-is-replaced.md.
 */
export class LiveFile {
  #held: Held | undefined;
  /** Locks the new file before it is in place, until it is released. */
  #guard: DuckDBInstance | undefined;
  /** Whether a replacement was started and failed: further commits would not be in the new file. */
  isOutdated = false;

  private constructor(
    readonly path: string,
    held: Held,
  ) {
    this.#held = held;
  }

  /** Opens the file, which must exist, and completes or removes what a killed process left next to it. */
  static async open(path: string): Promise<LiveFile> {
    for (;;) {
      if (!(await exists(path))) await rename(readyOf(path), path).catch(ignoreMissing);
      const before = await identityOf(path);
      const held = await hold(path).catch(async (error: unknown) => {
        if ((await identityOf(path)) === before) throw error;
        return undefined;
      });
      if (held === undefined) continue;
      try {
        // Another process may have replaced the file between opening and locking it, which makes the lock useless.
        if (before === (await identityOf(path)) && !(await exists(readyOf(path)))) {
          await removeCopies(path, NEW);
          return new LiveFile(path, held);
        }
        if (before === (await identityOf(path))) await putInPlace(path);
      } catch (error) {
        letGo(held);
        throw error;
      }
      letGo(held);
    }
  }

  get connection(): DuckDBConnection {
    if (this.#held === undefined) throw new StorageError(`${this.path} was released. Run the command again.`);
    return this.#held.connection;
  }

  /** Whether the log is so large that folding it costs less than reading it on every open. */
  async isLogLarge(isAtEnd: boolean): Promise<boolean> {
    const log = await sizeOf(logOf(this.path));
    return log > maxLogBytes(await sizeOf(this.path), isAtEnd);
  }

  /**
   * Folds the file and its log into a new file that replaces both. `write` fills the attached
   * database `next`, by default with a copy of everything. `use` gets the complete file before it is
   * in place, while it may still be copied: reading the live file itself would release DuckDB's
   * lock on it.
   */
  async rewrite(
    write: (connection: DuckDBConnection) => Promise<void> = copyAll,
    use?: (next: string) => Promise<void>,
  ): Promise<void> {
    const next = newOf(this.path);
    try {
      await removeDatabase(next);
      await writeAttached(this.connection, next, 'next', () => write(this.connection));
      await use?.(next);
    } catch (error) {
      await removeDatabase(next).catch(() => undefined);
      throw error;
    }
    await this.replaceBy(next);
  }

  /** Replaces the file and its log with the database at `next`, which no process holds. */
  async replaceBy(next: string): Promise<void> {
    await syncToDisk(next);
    const guard = await DuckDBInstance.create(next, { access_mode: 'READ_ONLY' });
    this.isOutdated = true;
    try {
      await rename(next, readyOf(this.path));
      await putInPlace(this.path);
    } catch (error) {
      guard.closeSync();
      throw error;
    }
    this.#letGo();
    this.#guard = guard;
    this.#held = await hold(this.path);
    this.isOutdated = false;
  }

  async close(): Promise<void> {
    // Removed before the lock is released, because afterwards the file may be the next holder's. A file that cannot be
    // removed is as harmless as one that a killed process left.
    await rm(lockOf(this.path), { force: true }).catch(() => undefined);
    this.#letGo();
  }

  #letGo(): void {
    if (this.#held !== undefined) letGo(this.#held);
    this.#guard?.closeSync();
    this.#held = this.#guard = undefined;
  }
}

interface Held {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
}

/** The file that names the process that holds the database. */
export const lockOf = (path: string): string => `${path}.lock`;
export const logOf = (path: string): string => `${path}.wal`;
/** A copy that is still being written. */
export const newOf = (path: string): string => path + NEW;
const NEW = '.new';
/** A complete copy: once it has this name, it replaces the old file and its log as the database. */
export const readyOf = (path: string): string => `${path}.ready`;

/** Opens the file such that DuckDB never writes to it on its own. */
async function hold(path: string): Promise<Held> {
  const instance = await openForWriting(path, {
    checkpoint_threshold: '1TB',
    memory_limit: `${maxMemory()}B`,
  });
  const connection = await instance.connect();
  await connection.run('PRAGMA disable_checkpoint_on_shutdown');
  return { instance, connection };
}

function letGo({ instance, connection }: Held): void {
  connection.closeSync();
  instance.closeSync();
}

/** Completes a replacement, by the holder of the old file. Idempotent. */
async function putInPlace(path: string): Promise<void> {
  await syncToDisk(dirname(path));
  await rm(logOf(path), { force: true });
  await rename(readyOf(path), path);
  await syncToDisk(dirname(path));
}

/** Changes a database file in place; only for copies that are not in use yet, and for `:memory:`. */
export async function changeDatabase<Result>(
  path: string,
  change: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const instance = await openForWriting(path);
  const connection = await instance.connect();
  try {
    const result = await change(connection);
    await connection.run('CHECKPOINT');
    return result;
  } finally {
    letGo({ instance, connection });
  }
}

/** Copies everything in the database into the empty database `next`. */
export async function copyAll(connection: DuckDBConnection): Promise<void> {
  await connection.run(`COPY FROM DATABASE ${await databaseOf(connection)} TO next`);
}

export async function removeDatabase(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(logOf(path), { force: true });
}

/** Removes what killed processes left of the databases `<path><end>` and `<path><end>-<process id or UUID>`. */
export async function removeCopies(path: string, end: string): Promise<void> {
  const [directory, start] = [dirname(path), basename(path) + end];
  for (const name of await readdir(directory))
    if (name.startsWith(start) && /^(-\d{1,7}|-[\da-f-]{36})?(\.wal)?$/.test(name.slice(start.length)))
      await rm(join(directory, name), { force: true });
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(ignoreMissing))?.size ?? 0;

/** Identifies a file regardless of its name; undefined if there is none. */
async function identityOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(ignoreMissing);
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}
