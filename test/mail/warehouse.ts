import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EffectsJournal } from '../../src/effects/journal.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { newDatabase } from '../new-database.js';

/** A new directory with a live database that can be closed and opened again. */
export interface TestWarehouse {
  readonly directory: string;
  readonly warehouse: Warehouse;
  readonly journal: EffectsJournal;
  reopen(): Promise<Warehouse>;
  remove(): Promise<void>;
}

export async function testWarehouse(): Promise<TestWarehouse> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-mail-'));
  const path = join(directory, 'warehouse.duckdb');
  await newDatabase(path);
  const open = () => openWarehouse(path, { command: 'test', now: () => new Date(), maxWaitMs: 0 });
  let warehouse = await open();
  let journal = await EffectsJournal.open(directory);
  return {
    directory,
    get warehouse() {
      return warehouse;
    },
    get journal() {
      return journal;
    },
    reopen: async () => {
      await warehouse.close();
      await journal.close();
      warehouse = await open();
      journal = await EffectsJournal.open(directory);
      return warehouse;
    },
    remove: async () => {
      await warehouse.close();
      await journal.close();
      await rm(directory, { recursive: true });
    },
  };
}
