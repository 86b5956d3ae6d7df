import { DuckDBInstance } from '@duckdb/node-api';

/** A format that refuses a stale log instead of applying it, and that DuckDB 1.4 and later can read. */
export const STORAGE_VERSION = 'v1.4.0';

/**
 * Opens a database file for writing. Always through the cache: a second instance of a file in one
 * process would release the lock that keeps other processes out. Sets the umask so that new files
 * are private to the user, because DuckDB keeps creating new logs.
 */
export function openForWriting(
  path: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<DuckDBInstance> {
  process.umask(0o077);
  return DuckDBInstance.fromCache(path, { storage_compatibility_version: STORAGE_VERSION, ...settings });
}

/**
 * Opens a database file so that no query can touch anything else: read only, no files but `writable`, no network, no
 * extensions, and no setting that would lift this again. `limits` are settings of DuckDB that limit it further.
 */
export async function openSafely(
  path: string,
  writable?: string,
  limits: Readonly<Record<string, string>> = {},
): Promise<DuckDBInstance> {
  const instance = await DuckDBInstance.create(path, {
    ...limits,
    access_mode: 'READ_ONLY',
    autoload_known_extensions: 'false',
    autoinstall_known_extensions: 'false',
  });
  const connection = await instance.connect();
  try {
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

/** A string as an SQL literal. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
