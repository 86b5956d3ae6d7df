import { join } from 'node:path';
import { z } from 'zod';
import { isPublished, publish } from '../src/warehouse/publish.js';
import { type History, openHistory } from '../src/warehouse/published.js';
import { openWarehouse } from '../src/warehouse/open.js';
import { type Parameters, type Reader, type Row, rowSchema } from '../src/warehouse/query.js';
import type { Warehouse } from '../src/warehouse/warehouse.js';
import { afterTest } from './cleanup.js';
import { newDatabase } from './new-database.js';
import { tempDir } from './temp-dir.js';

const open = new Set<Warehouse>();

/** The live database at `path`, a new one by default; closed after the test. */
export async function liveWarehouse(path?: string): Promise<Warehouse> {
  const warehouse = await openWarehouse(path ?? (await newLiveFile()), {
    command: 'readership test',
    now: () => new Date('2026-11-18T05:00:00Z'),
    maxWaitMs: 5_000,
  });
  open.add(warehouse);
  afterTest(async () => {
    if (open.delete(warehouse)) await warehouse.close();
  });
  return warehouse;
}

async function newLiveFile(): Promise<string> {
  const path = join(await tempDir(), 'warehouse.duckdb');
  await newDatabase(path);
  return path;
}

/** Publishes to a file if a reader would see a difference; returns its size, or undefined if not. */
export const publishChanges = async (warehouse: Warehouse, target: string): Promise<number | undefined> =>
  (await isPublished(warehouse, target, new Date('2026-11-22T05:00:00Z')))
    ? undefined
    : publish(warehouse, target);

/** Closes it before the end of the test. */
export async function closeNow(warehouse: Warehouse): Promise<void> {
  open.delete(warehouse);
  await warehouse.close();
}

/** Opens a live database for some work, and closes it. */
export async function inWarehouse<Result>(path: string, work: (warehouse: Warehouse) => Promise<Result>) {
  const warehouse = await liveWarehouse(path);
  const result = await work(warehouse);
  await closeNow(warehouse);
  return result;
}

/** Opens a published history for some work, and closes it. */
export async function inHistory<Result>(path: string, work: (history: History) => Promise<Result>) {
  const history = await openHistory(path);
  return work(history).finally(() => history.close());
}

/** Runs one statement in a transaction of its own. */
export const execute = (warehouse: Warehouse, sql: string, values?: Parameters): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(sql, values));

/** The rows of a query, whatever its columns are. */
export const rowsOf = (reader: Reader, sql: string, values?: Parameters): Promise<Row[]> =>
  reader.query(sql, rowSchema, values);

const plainRow = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** The values of a query, row by row; mostly, it has one column. */
export const valuesOf = async (reader: Reader, sql: string, values?: Parameters) =>
  (await reader.query(sql, plainRow, values)).flatMap((row) => Object.values(row));
