import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf, StorageError } from '../errors.js';
import { storageFailure } from '../storage.js';

// A process that opens a SQLite file in another way, such as with `fs` or DuckDB, and closes it again, gives back the
// locks that it holds on that file (POSIX says so). So `state.db` and `worker.lock` are opened here, and nowhere else.

export type Database = InstanceType<typeof DatabaseSync>;

/** How long SQLite itself waits for another process: meanwhile, this one answers nobody. */
const BUSY_TIMEOUT_MS = 500;

/** Opens a SQLite file whose transactions survive a power failure, and leave no other file behind. */
export function openDatabase(path: string, timeoutMs = BUSY_TIMEOUT_MS): Database {
  const database = new DatabaseSync(path, { timeout: timeoutMs, enableForeignKeyConstraints: true });
  try {
    database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** How often a read is tried again. A commit of another process takes milliseconds, or seconds on a slow disk. */
const MAX_READS = 20;

/** Results of SQLite that concern the file or the disk, and not a statement: code and message. */
const RESULTS = {
  BUSY: [5, 'database is locked'],
  LOCKED: [6, 'database table is locked'],
  NOMEM: [7, 'out of memory'],
  READONLY: [8, 'attempt to write a readonly database'],
  IOERR: [10, 'disk I/O error'],
  CORRUPT: [11, 'database disk image is malformed'],
  FULL: [13, 'database or disk is full'],
  CANTOPEN: [14, 'unable to open database file'],
  PROTOCOL: [15, 'locking protocol'],
  NOLFS: [22, 'large file support is disabled'],
  NOTADB: [26, 'file is not a database'],
} as const;
type Result = keyof typeof RESULTS;
const NAMES = Object.keys(RESULTS) as Result[];

/** Extended codes: the system refused to lock, to unlock, or to look at a lock. */
const LOCK_FAILURES = [0x8_0a, 0x9_0a, 0xe_0a, 0xf_0a];

/** The extended code of an error of SQLite. Its lowest byte is the code of the result. */
const extendedCodeOf = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined;

function resultOf(error: unknown): Result | undefined {
  if (error instanceof StorageError) return undefined;
  const code = extendedCodeOf(error);
  if (code !== undefined) return NAMES.find((name) => RESULTS[name][0] === (code & 0xff));
  // In version 1.2 of the library, errors of `all` have no code.
  return NAMES.find((name) => messageOf(error).includes(RESULTS[name][1]));
}

/** Whether another process was reading or writing. */
export const isBusy = (error: unknown): boolean => resultOf(error) === 'BUSY';

/** Whether a file is something else than a SQLite database. */
export const isNoDatabase = (error: unknown): boolean => resultOf(error) === 'NOTADB';

/** An error while something was done to a SQLite file: a `StorageError` if the file or the disk is the problem. */
export function failureOf(doing: string, path: string, error: unknown): unknown {
  const result = resultOf(error);
  if (result === undefined || result === 'BUSY') return error;
  if (result === 'CORRUPT' || result === 'NOTADB') return damaged(path, error);
  if (LOCK_FAILURES.includes(extendedCodeOf(error) ?? 0)) return lockless(dirname(path), error);
  // The library writes its own words before those of SQLite.
  return storageFailure(`${doing} ${path}`, new Error(RESULTS[result][1], { cause: error }));
}

/** The file is not a SQLite database, or a damaged one: it can only be replaced. */
export class DamagedStateError extends StorageError {}

export const damaged = (path: string, cause: unknown): DamagedStateError =>
  new DamagedStateError(
    `The state ${path} is damaged. Nothing was changed. Restore it from the history: readership restore`,
    { cause },
  );

/** The error for a file that other processes never stopped using, or seemed to. */
export function stillBusy(path: string, waitedMs: number, cause: unknown): StorageError {
  if (!canLockIn(dirname(path))) return lockless(dirname(path), cause);
  return new StorageError(
    `Cannot use ${path}: another process has been reading or writing it for ${waitedMs / 1000} s. ` +
      'Nothing was changed. Run the command again.',
    { cause },
  );
}

export const lockless = (directory: string, cause?: unknown): StorageError =>
  new StorageError(
    `Locks do not work in ${directory}, as with some NFS and SMB mounts, so two processes could send the same thing. ` +
      'Nothing was changed. Set dataDir to a directory on a local disk.',
    { cause },
  );

/** SQLite reports some refusals of the system to lock a file as if another process held it. Nobody holds a new file. */
export function canLockIn(directory: string): boolean {
  const path = join(directory, `${randomUUID()}.lock`);
  try {
    const database = openDatabase(path, 0);
    try {
      database.exec('BEGIN EXCLUSIVE');
    } finally {
      database.close();
    }
    return true;
  } catch (error) {
    return !isBusy(error) && !LOCK_FAILURES.includes(extendedCodeOf(error) ?? 0);
  } finally {
    rmSync(path, { force: true });
  }
}

/** Reads, again if another process is just committing. */
export function retriedRead<Result>(path: string, read: () => Result): Result {
  for (let reads = 1; ; reads++) {
    try {
      return read();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (reads === MAX_READS) throw stillBusy(path, MAX_READS * BUSY_TIMEOUT_MS, error);
    }
  }
}
