import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { totalmem } from 'node:os';

/** A format that DuckDB 1.4 and later can read. */
const STORAGE_VERSION = 'v1.4.0';

/**
 * Bytes that DuckDB may keep in memory for an export, a report or a new version of the history: a third of what this
 * machine or container has, at most 1 GB. The rest goes to temporary files next to the database.
 */
export function maxMemory(): number {
  // 0 if the limit of the container is not known.
  const limit = process.constrainedMemory() || Infinity;
  return Math.floor(Math.min(1e9, Math.min(totalmem(), limit) / 3));
}

/** Changes a database file that nobody else knows yet. It has no log afterwards. */
export async function changeDatabase<Result>(
  path: string,
  change: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const instance = await DuckDBInstance.create(path, {
    storage_compatibility_version: STORAGE_VERSION,
    checkpoint_threshold: '1TB',
    memory_limit: `${maxMemory()}B`,
  });
  const connection = await instance.connect();
  try {
    const result = await change(connection);
    await connection.run('CHECKPOINT');
    return result;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Runs `work` on a connection to nothing, which can attach files. */
export async function withConnection<Result>(
  work: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: `${maxMemory()}B` });
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** A string as an SQL literal. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A name as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
