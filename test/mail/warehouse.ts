import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWarehouse } from '../../src/warehouse/open.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';

/** A directory of its own, with a live database in it that can be closed and opened again. */
export interface TestWarehouse {
  readonly directory: string;
  readonly warehouse: Warehouse;
  reopen(): Promise<Warehouse>;
  remove(): Promise<void>;
}

export async function testWarehouse(): Promise<TestWarehouse> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-mail-'));
  const open = () =>
    openWarehouse(join(directory, 'warehouse.duckdb'), {
      command: 'test',
      now: () => new Date(),
      maxWaitMs: 0,
    });
  let warehouse = await open();
  return {
    directory,
    get warehouse() {
      return warehouse;
    },
    reopen: async () => {
      await warehouse.close();
      warehouse = await open();
      return warehouse;
    },
    remove: async () => {
      await warehouse.close();
      await rm(directory, { recursive: true });
    },
  };
}
