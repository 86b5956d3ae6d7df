import { appendFile, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { workspaceIdOf } from '../../src/warehouse/identity.js';
import { publishLake } from '../../src/warehouse/lake/lake.js';
import { restore } from '../../src/warehouse/restore.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';
import { lakeOptions, page, store } from './lake/lake.js';

/** A workspace whose journal and database agree, with a day and a lake, and no file held open. */
async function workspace() {
  const warehouse = await liveWarehouse();
  await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  const id = await warehouse.exclusive((connection) => workspaceIdOf(connection));
  const owner = JSON.stringify({ effect: 'workspace', id });
  await appendFile(join(dirname(warehouse.path), 'effects.log'), `${owner}\n`);
  const options = lakeOptions(join(await tempDir(), 'lake'));
  await publishLake(warehouse, options);
  await closeNow(warehouse);
  const { signal, place } = options;
  const lake = { place, shard: undefined, signal };
  return { liveFile: warehouse.path, directory: dirname(warehouse.path), lake };
}

const bytesOf = async (directory: string) => {
  const names = (await readdir(directory)).sort();
  return Promise.all(names.map(async (name) => [name, await readFile(join(directory, name), 'base64')]));
};

it('the database or lake of another workspace is refused, and no file changes', async () => {
  const [own, other] = [await workspace(), await workspace()];
  const before = await bytesOf(own.directory);
  const hold = { command: 'test', now: () => new Date('2026-11-18T03:00:00Z'), maxWaitMs: 0 };
  const historyFile = join(own.directory, 'history.duckdb');
  const restoring = (from: string | typeof other.lake) =>
    restore({ liveFile: own.liveFile, historyFile, from }, hold);
  for (const from of [other.liveFile, other.lake]) {
    await expect(restoring(from)).rejects.toThrow(StorageError);
    await expect(restoring(from)).rejects.toThrow(
      /effects\.log and .* belong to different workspaces\. Nothing was changed\./,
    );
    expect(await bytesOf(own.directory)).toEqual(before);
  }
  // What was there is kept with its log, each time under another name.
  const [first, second] = [await restoring(own.lake), await restoring(own.lake)];
  expect(second?.aside).toBe(`${first?.aside}-2`);
  expect(await readdir(own.directory)).toContain(`${basename(first?.aside ?? '')}.wal`);
});
