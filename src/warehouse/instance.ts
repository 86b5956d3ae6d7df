import { DuckDBInstance } from '@duckdb/node-api';

/** A format that refuses a stale log instead of applying it, and that DuckDB 1.4 and later can read. */
const STORAGE_VERSION = 'v1.4.0';

/**
 * Opens a database file for writing. Always through the cache: a second instance of one file in one process would
 * drop the lock that keeps other processes out.
 */
export const openForWriting = (path: string): Promise<DuckDBInstance> =>
  DuckDBInstance.fromCache(path, { storage_compatibility_version: STORAGE_VERSION });

/**
 * Opens a database file so that no query can touch anything else: read only, no files, no network, no extensions, and
 * no setting that would lift this again.
 */
export const openSafely = (path: string): Promise<DuckDBInstance> =>
  DuckDBInstance.fromCache(path, {
    access_mode: 'READ_ONLY',
    enable_external_access: 'false',
    autoload_known_extensions: 'false',
    autoinstall_known_extensions: 'false',
    lock_configuration: 'true',
  });
