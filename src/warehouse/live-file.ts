import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, ignoreMissing, syncToDisk } from '../files.js';
import { isHeldElsewhere, isOfDamage } from './storage-failure.js';
import { openForWriting, quoted, STORAGE_VERSION } from './instance.js';

/** The log is folded into a new file when it is larger than this, */
const MIN_LOG_BYTES = 16 * 1024 ** 2;
/** and than so much of the file. Rows take several times less space in a file, so a small one waits for more of the log. */
const enoughLog = (fileBytes: number): number =>
  Math.max(MIN_LOG_BYTES, Math.min(4 * fileBytes, 2 * MIN_LOG_BYTES), fileBytes / 4);
/** The three pages that DuckDB begins a file with. A file without more has never held anything. */
const HEADER_BYTES = 3 * 4096;

/**
 * The live database file, held open. The file is never changed once it is in place: what is committed goes to its log
 * (`.wal`), and `rewrite` folds both into a new file that replaces the old one. A kill at any write therefore leaves
 * either the old file and log or the new file. See docs/decisions/024-the-live-file-is-replaced.md.
 */
export class LiveFile {
  #held: Held | undefined;
  /** Keeps the new file locked from before it is in place until it is let go of. */
  #guard: DuckDBInstance | undefined;
  #isOutdated = false;

  private constructor(
    readonly path: string,
    private readonly limits: DatabaseLimits,
    held: Held,
  ) {
    this.#held = held;
  }

  /** Opens the file, which is made when it is missing, and finishes or removes what a killed process left beside it. */
  static async open(path: string, limits: DatabaseLimits = {}): Promise<LiveFile> {
    for (;;) {
      if (!(await exists(path))) await rename(readyOf(path), path).catch(ignoreMissing);
      const before = await identityOf(path);
      const held = await hold(path, limits).catch(async (error: unknown) => {
        if (before === undefined && !isHeldElsewhere(error)) {
          // It could not be made, as on a full disk: what there is of it holds nothing.
          await removeDatabase(path).catch(() => undefined);
          throw error;
        }
        if ((await identityOf(path)) !== before) return undefined;
        if (!(await isUnfinishedBeginning(path, error))) throw error;
        await rm(path, { force: true });
        return undefined;
      });
      if (held === undefined) continue;
      try {
        // Another process may have replaced the file between opening and locking it: its lock is then worth nothing.
        if (before === (await identityOf(path)) && !(await exists(readyOf(path)))) {
          await removeDatabase(newOf(path));
          return new LiveFile(path, limits, held);
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
    if (this.#held === undefined)
      throw new StorageError(`${this.path} was let go of. Run the command again.`);
    return this.#held.connection;
  }

  /** Whether a replacement was begun and failed: what would be committed now would not be in the new file. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /** Whether the log has grown so large that folding it costs less than reading it at every opening. */
  async isLogLarge(): Promise<boolean> {
    const log = await sizeOf(logOf(this.path));
    return log > enoughLog(await sizeOf(this.path));
  }

  /** Folds file and log into a new file, and replaces them by it. `change` is made to the new file before. */
  async rewrite(change?: (connection: DuckDBConnection) => Promise<void>): Promise<void> {
    const next = newOf(this.path);
    try {
      await removeDatabase(next);
      await copyDatabase(this.connection, next);
      if (change !== undefined) await changeDatabase(next, change);
    } catch (error) {
      await removeDatabase(next).catch(() => undefined);
      throw error;
    }
    await this.replaceBy(next);
  }

  /** Replaces file and log by the database at `next`, which nothing holds. */
  async replaceBy(next: string): Promise<void> {
    await syncToDisk(next);
    const guard = await DuckDBInstance.create(next, { access_mode: 'READ_ONLY' });
    this.#isOutdated = true;
    try {
      await rename(next, readyOf(this.path));
      await putInPlace(this.path);
    } catch (error) {
      guard.closeSync();
      throw error;
    }
    this.close();
    this.#guard = guard;
    this.#held = await hold(this.path, this.limits);
    this.#isOutdated = false;
  }

  close(): void {
    if (this.#held !== undefined) letGo(this.#held);
    this.#guard?.closeSync();
    this.#held = this.#guard = undefined;
  }
}

export interface DatabaseLimits {
  /** Bytes that DuckDB keeps in memory; what needs more goes to temporary files beside the database. */
  readonly maxMemory?: number;
}

interface Held {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
}

export const logOf = (path: string): string => `${path}.wal`;
/** A copy that is still being written. */
const newOf = (path: string): string => `${path}.new`;
/** A whole copy: from the moment it has this name, it is the database, and the old file and its log are not. */
export const readyOf = (path: string): string => `${path}.ready`;

/** Opens the file so that DuckDB never writes to it by itself. */
async function hold(path: string, { maxMemory }: DatabaseLimits): Promise<Held> {
  const limits = maxMemory === undefined ? {} : { memory_limit: `${maxMemory}B` };
  const instance = await openForWriting(path, { checkpoint_threshold: '1TB', ...limits });
  const connection = await instance.connect();
  await connection.run('PRAGMA disable_checkpoint_on_shutdown');
  return { instance, connection };
}

function letGo({ instance, connection }: Held): void {
  connection.closeSync();
  instance.closeSync();
}

/** The rest of a replacement, by whoever holds the old file; done twice, it does nothing more. */
async function putInPlace(path: string): Promise<void> {
  await syncToDisk(dirname(path));
  await rm(logOf(path), { force: true });
  await rename(readyOf(path), path);
  await syncToDisk(dirname(path));
}

/** Writes everything that a connection's database holds into a new database file. */
async function copyDatabase(connection: DuckDBConnection, target: string): Promise<void> {
  await connection.run(`ATTACH ${quoted(target)} AS copy (STORAGE_VERSION ${quoted(STORAGE_VERSION)})`);
  try {
    await connection.run(`COPY FROM DATABASE ${await databaseOf(connection)} TO copy`);
    await connection.run('CHECKPOINT copy');
  } finally {
    await connection.run('DETACH copy');
  }
}

/** The name of the database that a connection was opened for, as SQL writes it. */
export async function databaseOf(connection: DuckDBConnection): Promise<string> {
  const [[name] = []] = (await connection.runAndReadAll('SELECT current_database()')).getRows();
  return `"${String(name).replaceAll('"', '""')}"`;
}

/** Changes a database file in place: for copies that nobody relies on yet. */
export async function changeDatabase(
  path: string,
  change: (connection: DuckDBConnection) => Promise<void>,
): Promise<void> {
  const instance = await openForWriting(path);
  const connection = await instance.connect();
  try {
    await change(connection);
    await connection.run('CHECKPOINT');
  } finally {
    letGo({ instance, connection });
  }
}

export async function removeDatabase(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(logOf(path), { force: true });
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(ignoreMissing))?.size ?? 0;

/** Tells one file from another of the same name; undefined when there is none. */
async function identityOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(ignoreMissing);
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}

/** Whether `error` comes of a file whose very first pages were being written when its process was killed. */
async function isUnfinishedBeginning(path: string, error: unknown): Promise<boolean> {
  if (!isOfDamage(error) || (await exists(logOf(path))) || (await sizeOf(path)) > HEADER_BYTES) return false;
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, MAGIC_OFFSET);
    return buffer.equals(MAGIC) || buffer.every((byte) => byte === 0);
  } finally {
    await file.close();
  }
}
const MAGIC = Buffer.from('DUCK');
const MAGIC_OFFSET = 8;
