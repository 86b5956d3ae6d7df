import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.js';
import { publishLake } from '../../../src/warehouse/lake/lake.js';
import type { Warehouse } from '../../../src/warehouse/warehouse.js';
import { liveWarehouse, rowsOf } from '../../open-warehouse.js';
import { tempDir } from '../../temp-dir.js';
import { fill, lakeOptions, page, store, storedViews } from './lake.js';

const SHARD = { index: 1, count: 1 };
const daysOf = (warehouse: Warehouse) => rowsOf(warehouse, 'FROM day_loads ORDER BY ALL');

async function published() {
  const warehouse = await liveWarehouse();
  await store(warehouse, 'prj_1', { '2026-10-31': [], '2026-11-01': [page('/a', 3, 1), page('/b', 1)] });
  const lake = join(await tempDir(), 'lake');
  return { warehouse, lake };
}

it.each([
  ['without shards', undefined],
  ['of a shard', SHARD],
])(
  'a lost database %s is restored from its lake, including the ledger, and may publish there again',
  async (_, shard) => {
    const { warehouse, lake } = await published();
    await publishLake(warehouse, lakeOptions(lake, { shard }));
    const { place } = lakeOptions(lake);
    const restored = await liveWarehouse();
    await fill(restored, place, shard);
    expect(await storedViews(restored)).toEqual(await storedViews(warehouse));
    expect(await daysOf(restored)).toEqual(await daysOf(warehouse));
    expect(await publishLake(restored, lakeOptions(lake, { shard }))).toMatchObject({ files: 3, written: 0 });
  },
);

it('a lake that is empty or split differently restores nothing, and the message says why', async () => {
  const { warehouse, lake } = await published();
  const { place } = lakeOptions(lake);
  await mkdir(lake);
  const restored = await liveWarehouse();
  await expect(fill(restored, place, undefined)).rejects.toThrow(ConfigurationError);
  await publishLake(warehouse, lakeOptions(lake));
  await expect(fill(restored, place, { index: 1, count: 2 })).rejects.toThrow('no shards');
  expect(await storedViews(restored)).toEqual([]);
});
