import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays, type Day, lastEndedDay } from '../src/day.js';
import { readSql } from '../src/columns.js';
import { filledIn } from '../src/history/duckdb.js';
import { writeNext } from '../src/history/write.js';
import { createState, openState } from '../src/state/open.js';
import { placeOf } from '../src/state/workspace.js';
import { changeHistory } from '../test/open-history.js';
import { inTemporaryDirectory } from './processes.js';

const FILL = readSql(import.meta.url, 'fill-history.sql');
const FILL_DAY_LOADS = readSql(import.meta.url, 'day-loads.sql');
const UNSETTLE = readSql(import.meta.url, 'unsettle.sql');

export const yesterday = (): Day => lastEndedDay(new Date());

/** The first of `days` days that end with yesterday. */
export const firstOf = (days: number): Day => addDays(yesterday(), 1 - days);

/** Writes the configuration of a workspace with some projects, whose history begins on `first`. */
export const configure = (
  directory: string,
  baseUrl: string,
  first: Day,
  projects = 1,
  history: Readonly<Record<string, unknown>> = {},
): Promise<void> =>
  writeFile(
    join(directory, 'readership.yaml'),
    JSON.stringify({
      baseUrl,
      projects: Array.from({ length: projects }, (_, index) => ({ id: `prj_${index}` })),
      history: { start: first, ...history },
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

/** Creates a history that ends the day before yesterday, with a state; returns the path of the history. */
export async function createHistory(directory: string, shape: Shape): Promise<string> {
  const dataDir = join(directory, 'data');
  await mkdir(dataDir);
  (await createState(dataDir, await placeOf(dataDir))).close();
  const path = join(dataDir, 'history.duckdb');
  const values = { projects: 1, first: addDays(firstOf(shape.days), -1), ...shape };
  // In one go: a second change would leave as many free blocks in the file.
  await changeHistory(path, `${filledIn(FILL, values)};\n${FILL_DAY_LOADS}`);
  // As the first load of the last quarter did.
  await writeNext(path, {
    isRewritten: true,
    change: () => Promise.resolve(),
    beforeRename: () => undefined,
  });
  return path;
}

const POLLS = `
  WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < $runs)
  INSERT INTO runs (run, step, started_at, outcome)
  SELECT 'run ' || n, 'poll', strftime('%Y-%m-%dT%H:%M:%fZ', '2026-01-01', n || ' seconds'), 'done' FROM number`;

/** Runs `work` with a function that restores a workspace with a history whose next night is due. */
export const withNights = <Result>(
  baseUrl: string,
  { runs, ...shape }: Shape & { readonly runs: number },
  work: (directory: string, restore: () => Promise<void>) => Promise<Result>,
): Promise<Result> =>
  inTemporaryDirectory(async (directory) => {
    const [data, kept] = [join(directory, 'data'), join(directory, 'kept')];
    await configure(directory, baseUrl, addDays(firstOf(shape.days), -1), shape.projects);
    const path = await createHistory(directory, shape);
    await changeHistory(path, UNSETTLE, { since: addDays(yesterday(), -3) });
    const state = await openState(data);
    if (state === undefined) throw new Error(`there is no state in ${data}`);
    await state.transaction(() => state.run(POLLS, { runs }));
    state.close();
    await cp(data, kept, { recursive: true });
    return work(directory, async () => {
      await rm(data, { recursive: true });
      await cp(kept, data, { recursive: true });
    });
  });
