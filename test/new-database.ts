import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWarehouse } from '../src/warehouse/open.js';

let empty: Promise<Buffer> | undefined;

/** Writes a new live database to `path`: a copy, because creating the tables and views takes ten times as long. */
export async function newDatabase(path: string): Promise<void> {
  empty ??= emptyDatabase();
  await writeFile(path, await empty, { mode: 0o600 });
}

async function emptyDatabase(): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-test-'));
  const path = join(directory, 'warehouse.duckdb');
  const options = { command: 'readership test', now: () => new Date(), maxWaitMs: 0 };
  await openWarehouse(path, options).then((warehouse) => warehouse.close());
  const content = await readFile(path);
  await rm(directory, { recursive: true });
  return content;
}
