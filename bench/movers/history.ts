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
import { createSchema } from '../../src/history/schema.js';
import { readSql } from '../../src/columns.js';
import { STORE_VIEWS } from '../../test/open-history.js';
import { hashText, type Uniform, uniformFrom } from '../../src/sandbox/traffic/random.js';
import { normal, type SimulatedPage } from './simulate.js';

/** Monday of the last simulated week. */
export const LAST_WEEK = day('2026-11-09');

const DAY_LOADS = readSql(import.meta.url, 'day-loads.sql');
const TYPES = [VARCHAR, DATE, VARCHAR, VARCHAR, BIGINT, BIGINT, BIGINT];
const CHUNK_ROWS = 2048;
const MOST_WEEKS = 80;
/** Share of a week's views on each of its days, from Monday. */
const WEEKDAYS = [0.17, 0.18, 0.18, 0.17, 0.15, 0.07, 0.08];
/** Standard deviation of the logarithm of a day's share. */
const DAY_NOISE = 0.15;
/** By week, the last one last. */
const DAYS = Array.from({ length: MOST_WEEKS }, (_, index) =>
  WEEKDAYS.map((_, weekday) => {
    const at = addDays(LAST_WEEK, weekday - 7 * (MOST_WEEKS - 1 - index));
    return new DuckDBDateValue(daysBetween(day('1970-01-01'), at));
  }),
);

/**
 * Stores simulated projects in an in-memory database, with the real views, and passes it to `use`. If only weeks matter,
 * their views are stored on Mondays, which saves rows.
 */
export async function withHistory<Result>(
  projects: ReadonlyMap<string, readonly SimulatedPage[]>,
  use: (connection: DuckDBConnection) => Promise<Result>,
  spread: 'days' | 'Mondays' = 'days',
): Promise<Result> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await createSchema(connection);
    await connection.run(
      'CREATE TEMP TABLE page_views (project VARCHAR, day DATE, path VARCHAR, page VARCHAR, human BIGINT, ai BIGINT, total BIGINT)',
    );
    await store(connection, projects, spread);
    await connection.run(STORE_VIEWS);
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
  spread: 'days' | 'Mondays',
): Promise<void> {
  const appender = await connection.createAppender('page_views', 'main', 'temp');
  let rows: [string, DuckDBDateValue, string, string, bigint, bigint, bigint][] = [];
  const flush = () => {
    const chunk = DuckDBDataChunk.create(TYPES);
    chunk.setRows(rows);
    appender.appendDataChunk(chunk);
    rows = [];
  };
  for (const [project, pages] of projects) {
    const uniform = uniformFrom(hashText(project));
    for (const { path, views, bursts } of pages)
      for (const [index, days] of DAYS.slice(-views.human.length).entries()) {
        const spreadOut = (count = 0) => (spread === 'Mondays' ? [count] : byDay(count, uniform));
        const [human, ai] = [spreadOut(views.human[index]), spreadOut(views.ai[index])];
        if (bursts !== undefined) {
          addBurst(human, bursts.human[index] ?? 0, bursts.nights, uniform);
          addBurst(ai, bursts.ai[index] ?? 0, bursts.nights, uniform);
        }
        for (const [weekday, day] of days.entries()) {
          const [people, agents] = [human[weekday] ?? 0, ai[weekday] ?? 0];
          if (people + agents === 0) continue;
          rows.push([project, day, path, path, BigInt(people), BigInt(agents), BigInt(people + agents)]);
          if (rows.length === CHUNK_ROWS) flush();
        }
      }
  }
  flush();
  appender.closeSync();
}

/** The views of a week, each on a random day of it. */
function byDay(views: number, uniform: Uniform): number[] {
  const weights = WEEKDAYS.map((share) => share * Math.exp(DAY_NOISE * normal(uniform)));
  let [left, rest] = [views, weights.reduce((sum, weight) => sum + weight, 0)];
  return weights.map((weight, weekday) => {
    const count = weekday === 6 ? left : binomial(left, Math.min(1, weight / rest), uniform);
    left -= count;
    rest -= weight;
    return count;
  });
}

function binomial(trials: number, share: number, uniform: Uniform): number {
  const variance = trials * share * (1 - share);
  if (variance > 9)
    return Math.min(trials, Math.max(0, Math.round(trials * share + Math.sqrt(variance) * normal(uniform))));
  let count = 0;
  for (let trial = 0; trial < trials; trial += 1) if (uniform() < share) count += 1;
  return count;
}

/** Adds views to a random night, or to two in a row. */
function addBurst(days: number[], views: number, nights: number, uniform: Uniform): void {
  const first = Math.floor(uniform() * (8 - nights));
  for (let night = first; night < first + nights; night += 1)
    days[night] = (days[night] ?? 0) + Math.round(views / nights);
}
