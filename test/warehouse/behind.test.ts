import { DuckDBInstance } from '@duckdb/node-api';
import { existsSync } from 'node:fs';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { StepName } from '../../src/state/runs.js';
import { changeDatabase } from '../../src/warehouse/live-file.js';
import { BehindError, openWarehouse, refuseToForget } from '../../src/warehouse/open.js';
import { publish } from '../../src/warehouse/publish.js';
import { closeNow, execute, liveWarehouse } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from './stored-days.js';

const at = (hour: number) => new Date(`2026-11-18T0${hour}:00:00Z`);

const NEXT_DAYS = ['2026-11-02', '2026-11-03'];
const NEXT_STEPS: [StepName, number][] = [
  ['export', 2],
  ['publish', 3],
];

const START_STEP =
  "INSERT INTO runs BY NAME SELECT $run AS run, $step AS step, $now::TIMESTAMP AS started_at, 'running' AS outcome";

/** Loads days and records steps, and publishes; returns the live file and the history published from it. */
async function work(live: string | undefined, days: readonly string[], steps: readonly [StepName, number][]) {
  const warehouse = await liveWarehouse(live);
  for (const day of days) await store(warehouse, 'prj_1', { [day]: [page('/a', 3, 1)] });
  for (const [step, hour] of steps)
    await execute(warehouse, START_STEP, { run: `${step} ${hour}`, step, now: at(hour) });
  const historyFile = join(await tempDir(), 'history.duckdb');
  await publish(warehouse, historyFile);
  await closeNow(warehouse);
  return { live: warehouse.path, historyFile };
}

/** The words of the refusal; undefined if the live database may be used. */
const refusalOf = async (live: string, historyFile: string): Promise<string | undefined> => {
  const options = { command: 'test', now: () => at(9), maxWaitMs: 0, historyFile };
  try {
    await (await openWarehouse(live, options)).close();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(BehindError);
    expect(existsSync(`${live}.lock`)).toBe(false);
    return String(error);
  }
};

it('a live database that is older than its history is refused, with what it lacks', async () => {
  const before = await work(undefined, ['2026-11-01'], [['publish', 1]]);
  const older = join(await tempDir(), 'warehouse.duckdb');
  await copyFile(before.live, older);
  const after = await work(before.live, NEXT_DAYS, NEXT_STEPS);
  expect(await refusalOf(after.live, after.historyFile)).toBeUndefined();
  expect(await refusalOf(after.live, before.historyFile)).toBeUndefined();
  // Its views are of an earlier version, and stay so.
  await changeDatabase(older, (connection) => connection.run('COMMENT ON TABLE schema_version IS NULL'));
  const unchanged = await readFile(older);
  expect(await refusalOf(older, after.historyFile)).toContain(
    'it lacks 2 loaded days (Nov 2 – 3, 2026) and 2 recorded steps since Nov 18, 2026 at 02:00 UTC. Either',
  );
  expect(unchanged.equals(await readFile(older))).toBe(true);
  // Without a day that it lacks, no days are named.
  const { historyFile } = await work(before.live, [], [['publish', 4]]);
  await work(older, NEXT_DAYS, NEXT_STEPS);
  expect(await refusalOf(older, historyFile)).toContain('it lacks 1 recorded step since');
});

it('a history that is missing, damaged or of another workspace refuses nothing', async () => {
  const [own, other] = [
    await work(undefined, ['2026-11-01'], [['publish', 1]]),
    await work(undefined, ['2026-11-05'], [['publish', 2]]),
  ];
  expect(await refusalOf(own.live, other.historyFile)).toBeUndefined();
  await writeFile(other.historyFile, 'damaged');
  expect(await refusalOf(own.live, other.historyFile)).toBeUndefined();
  const unlike = join(await tempDir(), 'unlike.duckdb');
  (await DuckDBInstance.create(unlike)).closeSync();
  expect(await refusalOf(own.live, unlike)).toBeUndefined();
  await rm(other.historyFile);
  expect(await refusalOf(own.live, other.historyFile)).toBeUndefined();
});

it('an empty database beside a history is refused, with tables or without', async () => {
  const { historyFile } = await work(undefined, ['2026-11-01'], [['publish', 1]]);
  const live = join(await tempDir(), 'warehouse.duckdb');
  (await DuckDBInstance.create(live)).closeSync();
  for (let time = 0; time < 2; time++)
    expect(await refusalOf(live, historyFile)).toContain('it lacks 1 loaded day (Nov 1, 2026)');
});

it('a missing live database is not made again if there is a history of it', async () => {
  const { live, historyFile } = await work(undefined, ['2026-11-01'], [['publish', 1]]);
  const [noLive, noHistory] = [`${live}.moved`, `${historyFile}.moved`];
  for (const there of [
    [live, historyFile],
    [live, noHistory],
    [noLive, noHistory],
  ] as const)
    await refuseToForget(...there);
  await expect(refuseToForget(noLive, historyFile)).rejects.toThrow(BehindError);
  await expect(refuseToForget(noLive, historyFile)).rejects.toThrow(
    `The live database ${noLive} is missing, but`,
  );
});
