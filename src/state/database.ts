import { DatabaseSync } from '@photostructure/sqlite';

// A process that opens a SQLite file in another way, such as with `fs` or DuckDB, and closes it again, gives back the
// locks that it holds on that file (POSIX says so). So `state.db` and `worker.lock` are opened here, and nowhere else.

export type Database = InstanceType<typeof DatabaseSync>;

/** How long SQLite itself waits for another process: meanwhile, this one answers nobody. */
export const BUSY_TIMEOUT_MS = 500;

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
