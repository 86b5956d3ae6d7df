import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, day } from '../../src/day.js';
import { storeDay } from '../../src/history/ledger.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import { publish } from '../../src/warehouse/publish.js';
import { readSql } from '../../src/warehouse/query.js';

const FILL = readSql(import.meta.url, 'fill-history.sql');
const PATHS = 5_000;
const FIRST = day('2015-01-01');

/** Seconds to store one night of 5,000 pages, and to publish, in a history of `rows` rows. */
export async function nightInto(rows: number): Promise<{ storeMs: number; publishMs: number }> {
  const directory = await mkdtemp(join(tmpdir(), 'readership-bench-'));
  const now = () => new Date();
  const warehouse = await openWarehouse(join(directory, 'warehouse.duckdb'), {
    command: 'bench',
    now,
    maxWaitMs: 0,
  });
  try {
    const days = rows / PATHS;
    await warehouse.transaction((transaction) =>
      transaction.execute(FILL, { first: FIRST, days, paths: PATHS }),
    );
    await warehouse.exclusive((connection) => connection.run('CHECKPOINT'));
    const night = Array.from({ length: PATHS }, (_, index) => ({
      path: `/docs/page-${index}`,
      human: 3,
      ai: 2,
      total: 5,
    }));
    const totals = { human: 3 * PATHS, ai: 2 * PATHS, total: 5 * PATHS };
    const unattributed = { human: 0, ai: 0, total: 0 };
    const walked = { totals, rows: night, verdict: 'consistent', unattributed } as const;
    const storeMs = await timed(() =>
      storeDay(
        warehouse,
        { project: 'prj_bench', day: addDays(FIRST, days), now: now() },
        walked,
        'provisional',
      ),
    );
    const publishMs = await timed(() => publish(warehouse, join(directory, 'history.duckdb')));
    return { storeMs, publishMs };
  } finally {
    await warehouse.close();
    await rm(directory, { recursive: true });
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
