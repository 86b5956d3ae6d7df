import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays, type Day, lastEndedDay } from '../src/day.js';
import { ISO_CALENDAR, lastEnded } from '../src/reports/period.js';
import { keepMovers } from '../src/warehouse/movers.js';
import { openWarehouse } from '../src/warehouse/open.js';
import { readSql } from '../src/warehouse/query.js';
import type { Warehouse } from '../src/warehouse/warehouse.js';
import { inTemporaryDirectory, measure, readership } from './processes.js';

const FILL = readSql(import.meta.url, 'fill-history.sql');
const FILL_DAY_LOADS = readSql(import.meta.url, 'day-loads.sql');
const UNSETTLE = readSql(import.meta.url, 'unsettle.sql');

export const yesterday = (): Day => lastEndedDay(new Date());

/** The first of `days` days that end with yesterday. */
export const firstOf = (days: number): Day => addDays(yesterday(), 1 - days);

/** Writes the configuration of a workspace with some projects, whose history begins on `first`. */
export const configure = (directory: string, baseUrl: string, first: Day, projects = 1): Promise<void> =>
  writeFile(
    join(directory, 'readership.yaml'),
    JSON.stringify({
      baseUrl,
      projects: Array.from({ length: projects }, (_, index) => ({ id: `prj_${index}` })),
      history: { start: first },
    }),
  );

/** Number of days and paths in a history, and of paths viewed every day. */
export interface Shape {
  readonly days: number;
  readonly paths: number;
  readonly daily: number;
  /** 1 by default. */
  readonly projects?: number;
}

/** Creates a history that ends the day before yesterday and is not published, and passes it to `work`. */
export async function withHistory<Result>(
  directory: string,
  shape: Shape,
  work: (warehouse: Warehouse) => Promise<Result>,
): Promise<Result> {
  const warehouse = await openWarehouse(join(directory, 'data', 'warehouse.duckdb'), {
    ...{ command: 'bench', maxWaitMs: 0 },
    now: () => new Date(),
  });
  try {
    await warehouse.transaction(async (transaction) => {
      await transaction.execute(FILL, { projects: 1, first: addDays(firstOf(shape.days), -1), ...shape });
      await transaction.execute(FILL_DAY_LOADS);
    });
    await warehouse.exclusive((connection) => connection.run('CHECKPOINT'));
    return await work(warehouse);
  } finally {
    await warehouse.close();
  }
}

/** Runs `work` with a function that restores a published workspace of a history whose next night is due. */
export const withNights = <Result>(
  baseUrl: string,
  { runs, ...shape }: Shape & { readonly runs: number },
  work: (directory: string, restore: () => Promise<void>) => Promise<Result>,
): Promise<Result> =>
  inTemporaryDirectory(async (directory) => {
    const [data, kept] = [join(directory, 'data'), join(directory, 'kept')];
    await configure(directory, baseUrl, addDays(firstOf(shape.days), -1), shape.projects);
    await withHistory(directory, shape, async (warehouse) => {
      await warehouse.transaction(async (transaction) => {
        await transaction.execute(UNSETTLE, { since: addDays(yesterday(), -3) });
        await transaction.execute(
          "INSERT INTO runs BY NAME SELECT uuid() AS run, 'poll' AS step, TIMESTAMP '2026-01-01' + to_seconds(range) AS started_at, 'done' AS outcome FROM range($runs::BIGINT)",
          { runs },
        );
      });
      // As after the night before.
      await keepMovers(warehouse, lastEnded('week', new Date(), ISO_CALENDAR).first);
    });
    await measure(readership(directory, 'publish'));
    await cp(data, kept, { recursive: true });
    return work(directory, async () => {
      await rm(data, { recursive: true });
      await cp(kept, data, { recursive: true });
    });
  });
