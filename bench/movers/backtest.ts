import { BIGINT, DATE, DuckDBDateValue, DuckDBInstance, VARCHAR } from '@duckdb/node-api';
import { z } from 'zod';
import { daysBetween, day } from '../../src/day.js';
import { appendRows } from '../../src/warehouse/warehouse.js';
import { migrate } from '../../src/warehouse/migrate.js';
import { queryRows, readSql } from '../../src/warehouse/query.js';
import { Transaction } from '../../src/warehouse/warehouse.js';
import { type SimulatedSite, simulateSite, WEEK_START } from './simulate.js';

const RANKINGS = readSql(import.meta.url, 'rankings.sql');
const DAY_LOADS = readSql(import.meta.url, '../day-loads.sql');
const WAYS = ['movers', 'percent change', 'absolute change', 'Poisson z'] as const;

/** How well a ranking finds the pages that really moved. */
export interface Score {
  readonly way: (typeof WAYS)[number];
  /** Share of its top ten, or fewer, that really moved. */
  readonly precision: number;
  /** Share of the pages that really moved that are in its top ten. */
  readonly recall: number;
}

/** Plants movers in `sites` simulated sites and evaluates how well each ranking finds them. */
export async function backtestMovers(sites: number): Promise<Score[]> {
  const totals = new Map(WAYS.map((way) => [way, { hits: 0, listed: 0, planted: 0 }]));
  for (let seed = 1; seed <= sites; seed += 1) {
    const site = simulateSite(seed);
    const rankings = await rank(site);
    for (const [way, total] of totals) {
      const listed = rankings.filter((row) => row.way === way);
      total.hits += listed.filter(({ mover }) => site.planted.has(mover)).length;
      total.listed += listed.length;
      total.planted += site.planted.size;
    }
  }
  return [...totals].map(([way, { hits, listed, planted }]) => ({
    way,
    precision: hits / Math.max(1, listed),
    recall: hits / planted,
  }));
}

const ranking = z.object({ way: z.enum(WAYS), mover: z.string() });

async function rank({ views }: SimulatedSite): Promise<z.infer<typeof ranking>[]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await migrate(connection, ':memory:');
    await appendRows(
      new Transaction(connection),
      'page_views',
      [
        { type: VARCHAR, value: () => 'prj_1' },
        { type: DATE, value: (row) => new DuckDBDateValue(daysBetween(day('1970-01-01'), row.day)) },
        { type: VARCHAR, value: (row) => row.path },
        { type: BIGINT, value: (row) => BigInt(row.human) },
        { type: BIGINT, value: (row) => BigInt(row.ai) },
        { type: BIGINT, value: (row) => BigInt(row.human + row.ai) },
      ],
      views,
    );
    await connection.run(DAY_LOADS);
    return await queryRows(connection, RANKINGS, ranking, { week_start: WEEK_START });
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
