import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { messageOf } from '../errors.js';

/** A format that refuses a stale log instead of applying it, and that DuckDB 1.4 and later can read. */
const STORAGE_VERSION = 'v1.4.0';

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

/**
 * Opens a database file so that no query can touch anything else: read only, no files but `writable`, no network, no
 * extensions, and no setting that would lift this again. `limits` are settings of DuckDB that limit it further. What
 * `:memory:` contains is for `prepare` to create.
 */
export async function openSafely(
  path: string,
  writable?: string,
  limits: Readonly<Record<string, string>> = {},
  prepare: (connection: DuckDBConnection) => Promise<void> = () => Promise.resolve(),
): Promise<DuckDBInstance> {
  const instance = await DuckDBInstance.create(path, {
    ...limits,
    access_mode: path === ':memory:' ? 'AUTOMATIC' : 'READ_ONLY',
    autoload_known_extensions: 'false',
    autoinstall_known_extensions: 'false',
  });
  const connection = await instance.connect();
  try {
    await prepare(connection);
    if (writable !== undefined) await connection.run(`SET allowed_paths = [${quoted(writable)}]`);
    await connection.run('SET enable_external_access = false; SET lock_configuration = true');
    return instance;
  } catch (error) {
    instance.closeSync();
    throw error;
  } finally {
    connection.closeSync();
  }
}

/** A file could not be attached. */
export class AttachError extends Error {}

/** Runs `work` while the file at `path` is attached for reading as the database `name`. */
export const whileAttached = <Result>(
  connection: DuckDBConnection,
  path: string,
  name: string,
  work: () => Promise<Result>,
): Promise<Result> => attach(connection, path, name, 'READ_ONLY', work);

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
  attach(
    connection,
    path,
    name,
    `STORAGE_VERSION ${quoted(STORAGE_VERSION)}, RECOVERY_MODE NO_WAL_WRITES`,
    async () => {
      await work();
      await connection.run(`CHECKPOINT ${name}`);
    },
  );

async function attach<Result>(
  connection: DuckDBConnection,
  path: string,
  name: string,
  options: string,
  work: () => Promise<Result>,
): Promise<Result> {
  await connection.run(`ATTACH ${quoted(path)} AS ${name} (${options})`).catch((cause: unknown) => {
    throw new AttachError(messageOf(cause), { cause });
  });
  try {
    return await work();
  } finally {
    await connection.run(`DETACH ${name}`);
  }
}

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

/** The tables of a connection's database, as `"schema"."table"`, with those that a user made. */
export async function everyTable(connection: DuckDBConnection): Promise<string[]> {
  const tables = await connection.runAndReadAll(
    'SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database() ORDER BY ALL',
  );
  return tables.getRows().map((names) => names.map((name) => identifier(String(name))).join('.'));
}

/** A string as an SQL literal. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A name as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Whether an error says that another process has the file open. */
export const isHeldElsewhere = (error: unknown): boolean =>
  messageOf(error).includes('Could not set lock on file');
