import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tempDir } from './temp-dir.js';

const MIGRATIONS_OF_010 = ['001_history', '002_runs', '003_agents', '004_requests', '005_deliveries'];

/** A live database as 0.1.0 left it, with what the test puts into it. */
export async function databaseOf010(fill: (connection: DuckDBConnection) => Promise<void>): Promise<string> {
  const path = join(await tempDir(), 'warehouse.duckdb');
  const instance = await DuckDBInstance.create(path, { storage_compatibility_version: 'v1.4.0' });
  const connection = await instance.connect();
  await connection.run('CREATE TABLE schema_version (version INTEGER NOT NULL)');
  for (const [index, name] of MIGRATIONS_OF_010.entries()) {
    const file = new URL(`../src/warehouse/migrations/${name}.sql`, import.meta.url);
    await connection.run(await readFile(file, 'utf8'));
    await connection.run('INSERT INTO schema_version VALUES ($version)', { version: index + 1 });
  }
  await fill(connection);
  connection.closeSync();
  instance.closeSync();
  return path;
}
