import { mkdir, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { publish } from '../../src/warehouse/publish.js';
import { restore } from '../../src/warehouse/restore.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from './stored-days.js';

const NOW = new Date('2026-11-18T03:00:00Z');
const HOLD = { command: 'test', now: () => NOW, maxWaitMs: 0 };

/** A live database with a day and a backup, and no file held open. */
async function workspace() {
  const warehouse = await liveWarehouse();
  const { path: liveFile } = warehouse;
  await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  const backup = join(await tempDir(), 'backup.duckdb');
  await publish(warehouse, backup);
  // In the log of the live database.
  await store(warehouse, 'prj_1', { '2026-11-02': [page('/a', 2, 1)] });
  await closeNow(warehouse);
  return { liveFile, backup, directory: dirname(liveFile) };
}

const bytesOf = async (directory: string) => {
  const names = (await readdir(directory)).sort();
  return Promise.all(names.map(async (name) => [name, await readFile(join(directory, name), 'base64')]));
};

it('a directory is refused, and no file changes', async () => {
  const { liveFile, directory } = await workspace();
  const before = await bytesOf(directory);
  const lake = join(await tempDir(), 'lake');
  await mkdir(lake);
  const historyFile = join(directory, 'history.duckdb');
  const restoring = restore({ liveFile, historyFile, from: lake }, HOLD);
  await expect(restoring).rejects.toThrow(StorageError);
  await expect(restoring).rejects.toThrow(
    /lake is a directory, not a Readership database\. Nothing was changed\./,
  );
  expect(await bytesOf(directory)).toEqual(before);
});

it('what was there is kept with its log, each time under another name', async () => {
  const { liveFile, backup, directory } = await workspace();
  const historyFile = join(directory, 'history.duckdb');
  const restoring = () => restore({ liveFile, historyFile, from: backup }, HOLD);
  const [first, second] = [await restoring(), await restoring()];
  expect(second?.aside).toBe(`${first?.aside}-2`);
  expect(await readdir(directory)).toContain(`${basename(first?.aside ?? '')}.wal`);
});
