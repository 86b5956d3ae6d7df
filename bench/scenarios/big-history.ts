import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, day } from '../../src/day.js';
import { storeDay } from '../../src/export/ledger.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import { publish } from '../../src/warehouse/publish.js';
import { readSql } from '../../src/warehouse/query.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';

const FILL = readSql(import.meta.url, 'fill-history.sql');
const FILL_DAY_LOADS = readSql(import.meta.url, '../day-loads.sql');
const PATHS = 5_000;
export const FIRST = day('2015-01-01');

/** Number of days and paths in a history, and of paths viewed every day. */
export interface Shape {
  readonly days: number;
  readonly paths: number;
  readonly daily: number;
}

/** Creates a history, passes it to `work`, and deletes it. */
export async function withHistory<Result>(
  shape: Shape,
  work: (warehouse: Warehouse, historyFile: string) => Promise<Result>,
): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-bench-'));
  const warehouse = await openWarehouse(join(directory, 'warehouse.duckdb'), {
    ...{ command: 'bench', maxWaitMs: 0 },
    now: () => new Date(),
  });
  try {
    await warehouse.transaction(async (transaction) => {
      await transaction.execute(FILL, { first: FIRST, ...shape });
      await transaction.execute(FILL_DAY_LOADS);
    });
    await warehouse.exclusive((connection) => connection.run('CHECKPOINT'));
    return await work(warehouse, join(directory, 'history.duckdb'));
  } finally {
    await warehouse.close();
    await rm(directory, { recursive: true });
  }
}

/** Times to store one night of 5,000 pages, and to publish, in a history of `rows` rows. */
export function nightInto(rows: number): Promise<{ storeMs: number; publishMs: number }> {
  const days = rows / PATHS;
  return withHistory({ days, paths: PATHS, daily: PATHS }, async (warehouse, historyFile) => {
    const night = Array.from({ length: PATHS }, (_, index) => ({
      path: `/docs/page-${index}`,
      human: 3,
      ai: 2,
      total: 5,
    }));
    const totals = { human: 3 * PATHS, ai: 2 * PATHS, total: 5 * PATHS };
    const unattributed = { human: 0, ai: 0, total: 0 };
    const walked = { totals, rows: night, doubt: undefined, unattributed } as const;
    const at = { project: 'prj_bench', day: addDays(FIRST, days), now: new Date() };
    const storeMs = await timed(() => storeDay(warehouse, at, walked, 'provisional'));
    const publishMs = await timed(() => publish(warehouse, historyFile));
    return { storeMs, publishMs };
  });
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
