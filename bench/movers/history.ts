import {
  BIGINT,
  DATE,
  type DuckDBConnection,
  DuckDBDataChunk,
  DuckDBDateValue,
  DuckDBInstance,
  VARCHAR,
} from '@duckdb/node-api';
import { addDays, daysBetween, day } from '../../src/day.js';
import { migrate } from '../../src/warehouse/migrate.js';
import { readSql } from '../../src/warehouse/query.js';
import type { SimulatedPage } from './simulate.js';

/** Monday of the last simulated week. */
export const LAST_WEEK = day('2026-11-09');

const DAY_LOADS = readSql(import.meta.url, 'day-loads.sql');
const TYPES = [VARCHAR, DATE, VARCHAR, BIGINT, BIGINT, BIGINT];
const CHUNK_ROWS = 2048;
const MOST_WEEKS = 80;
/** Days of a week that get a page's views: as many as a rise needs, to store fewer rows. */
const WEEKDAYS = [0, 2, 4];
/** By week, the last one last. */
const DAYS = Array.from({ length: MOST_WEEKS }, (_, index) =>
  WEEKDAYS.map((weekday) => {
    const at = addDays(LAST_WEEK, weekday - 7 * (MOST_WEEKS - 1 - index));
    return new DuckDBDateValue(daysBetween(day('1970-01-01'), at));
  }),
);

/** Stores simulated projects in an in-memory database, with the real views, and passes it to `use`. */
export async function withHistory<Result>(
  projects: ReadonlyMap<string, readonly SimulatedPage[]>,
  use: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await migrate(connection, ':memory:');
    await store(connection, projects);
    await connection.run(DAY_LOADS);
    return await use(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function store(
  connection: DuckDBConnection,
  projects: ReadonlyMap<string, readonly SimulatedPage[]>,
): Promise<void> {
  const appender = await connection.createAppender('page_views');
  let rows: [string, DuckDBDateValue, string, bigint, bigint, bigint][] = [];
  const flush = () => {
    const chunk = DuckDBDataChunk.create(TYPES);
    chunk.setRows(rows);
    appender.appendDataChunk(chunk);
    rows = [];
  };
  for (const [project, pages] of projects)
    for (const { path, views } of pages)
      for (const [index, days] of DAYS.slice(-views.human.length).entries())
        for (const [part, day] of days.entries()) {
          const human = portion(views.human[index] ?? 0, part);
          const ai = portion(views.ai[index] ?? 0, part);
          if (human + ai === 0) continue;
          rows.push([project, day, path, BigInt(human), BigInt(ai), BigInt(human + ai)]);
          if (rows.length === CHUNK_ROWS) flush();
        }
  flush();
  appender.closeSync();
}

/** The views of a week on one of its days. */
const portion = (views: number, part: number): number => Math.floor((views + part) / WEEKDAYS.length);
