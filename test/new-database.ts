import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWarehouse } from '../src/warehouse/open.js';

let migrated: Promise<Buffer> | undefined;

/** Writes a new live database to `path`: a copy, because all the migrations take ten times as long. */
export async function newDatabase(path: string): Promise<void> {
  migrated ??= migratedDatabase();
  await writeFile(path, await migrated, { mode: 0o600 });
}

async function migratedDatabase(): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-test-'));
  const path = join(directory, 'warehouse.duckdb');
  const options = { command: 'readership test', now: () => new Date(), maxWaitMs: 0 };
  await openWarehouse(path, options).then((warehouse) => warehouse.close());
  const content = await readFile(path);
  await rm(directory, { recursive: true });
  return content;
}
