import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../errors.js';

/** A format that refuses a stale log instead of applying it, and that DuckDB 1.4 and later can read. */
const STORAGE_VERSION = 'v1.4.0';

/**
 * Bytes that DuckDB may keep in memory for an export, a report or a publication: a third of what this machine or
 * container has, at most 1 GB. The rest goes to temporary files next to the database.
 */
export function maxMemory(): number {
  // 0 if the limit of the container is not known.
  const limit = process.constrainedMemory() || Infinity;
  return Math.floor(Math.min(1e9, Math.min(totalmem(), limit) / 3));
}

/**
 * Opens a database file for writing. Always through the cache: a second instance of a file in one
 * process would release the lock that keeps other processes out.
 */
export function openForWriting(
  path: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<DuckDBInstance> {
  return DuckDBInstance.fromCache(path, { storage_compatibility_version: STORAGE_VERSION, ...settings });
}

/** A file could not be attached. */
export class AttachError extends Error {}

/** Runs `work` while the file at `path` is attached as the database `name`, by default for reading. */
export async function whileAttached<Result>(
  connection: DuckDBConnection,
  path: string,
  name: string,
  work: () => Promise<Result>,
  options = 'READ_ONLY',
): Promise<Result> {
  await connection.run(`ATTACH ${literal(path)} AS ${name} (${options})`).catch((cause: unknown) => {
    throw new AttachError(messageOf(cause), { cause });
  });
  try {
    return await work();
  } finally {
    await connection.run(`DETACH ${name}`);
  }
}

/**
 * Writes a database file with `work`, while it is attached as the database `name`. Without a log: whoever calls this
 * discards the file if it fails.
 */
export const writeAttached = (
  connection: DuckDBConnection,
  path: string,
  name: string,
  work: () => Promise<void>,
): Promise<void> =>
  whileAttached(
    connection,
    path,
    name,
    async () => {
      await work();
      await connection.run(`CHECKPOINT ${name}`);
    },
    `STORAGE_VERSION ${literal(STORAGE_VERSION)}, RECOVERY_MODE NO_WAL_WRITES`,
  );

/** Runs `work` with another attached database as the current one. */
export async function whileUsing(
  connection: DuckDBConnection,
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  const own = await databaseOf(connection);
  await connection.run(`USE ${name}`);
  try {
    await work();
  } finally {
    await connection.run(`USE ${own}`);
  }
}

/** The name of a connection's database, quoted for SQL. */
export async function databaseOf(connection: DuckDBConnection): Promise<string> {
  const [[name] = []] = (await connection.runAndReadAll('SELECT current_database()')).getRows();
  return identifier(String(name));
}

/** A string as an SQL literal. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A name as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Whether an error says that another process has the file open, and not that the file system has no locks. */
export const isHeldElsewhere = (error: unknown): boolean =>
  /Could not set lock on file.*(Conflicting lock|Resource temporarily unavailable|Permission denied)/s.test(
    messageOf(error),
  );

/** Throws DuckDB's error if a database in the directory could not be locked, or not be written. */
export async function tryLock(directory: string): Promise<void> {
  const path = join(directory, `lock-test-${process.pid}.duckdb`);
  try {
    (await openForWriting(path)).closeSync();
  } finally {
    await rm(path, { force: true });
  }
}
