import { DuckDBInstance } from '@duckdb/node-api';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { publishLake } from '../../../src/warehouse/lake/publish-lake.js';
import { closeNow, liveWarehouse } from '../../open-warehouse.js';
import { tempDir } from '../../temp-dir.js';
import { dataFiles, lakeViews, page, readManifests, store, storedViews } from './lake.js';

const DIST = fileURLToPath(new URL('../../../dist/', import.meta.url));

/** Publishes a lake, and dies as by a crash right before the n-th time that it makes, renames, writes or removes a file. */
const PUBLISH = `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const [dist, database, directory, dieAt] = process.argv.slice(1);
  const { openWarehouse } = await import(dist + 'warehouse/open.js');
  const warehouse = await openWarehouse(database, { command: 'test', now: () => new Date(), maxWaitMs: 30_000 });
  let touched = 0;
  for (const name of ['mkdir', 'rename', 'rm', 'writeFile']) {
    const real = fs[name];
    fs[name] = (...values) => {
      if (++touched === Number(dieAt)) process.kill(process.pid, 'SIGKILL');
      return real(...values);
    };
  }
  syncBuiltinESMExports();
  const { publishLake } = await import(dist + 'warehouse/lake/publish-lake.js');
  await publishLake(warehouse, { directory, signal: new AbortController().signal });
  process.exit(0);`;

async function publishAndDie(database: string, directory: string, dieAt: number): Promise<'killed' | 'done'> {
  if (!existsSync(DIST)) throw new Error(`${DIST} is not built: npm run build`);
  const values = ['--input-type=module', '--eval', PUBLISH, DIST, database, directory, String(dieAt)];
  const child = spawn(process.execPath, values, { stdio: 'inherit' });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (signal === 'SIGKILL') return 'killed';
  expect(code).toBe(0);
  return 'done';
}

/** How often readers who take all Parquet files there are count a row too often. */
async function countedTwice(directory: string): Promise<number> {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(
    `SELECT count(*) - count(DISTINCT (project, day, path)) FROM '${directory}/views/**/*.parquet'`,
  );
  connection.closeSync();
  instance.closeSync();
  return z.tuple([z.bigint().transform(Number)]).parse(reader.getRows()[0])[0];
}

it('a lake whose publisher is killed at any moment is one committed state, and the next publish cleans up', async () => {
  const home = await tempDir();
  const database = join(home, 'warehouse.duckdb');
  const warehouse = await liveWarehouse(database);
  await store(warehouse, 'prj_a', {
    '2026-09-01': [page('/a', 1)],
    '2026-10-01': [page('/a', 1), page('/b', 1)],
    '2026-11-01': [page('/a', 1)],
  });
  await closeNow(warehouse);
  const before = join(home, 'before');
  await publishAndDie(database, before, 0);
  const changed = await liveWarehouse(database);
  await store(changed, 'prj_a', {
    '2026-10-01': [page('/a', 2)],
    '2026-12-01': [page('/a', 2)],
  });
  const newViews = await storedViews(changed);
  await closeNow(changed);
  const oldViews = await lakeViews(before);

  const states: string[] = [];
  const doubled: boolean[] = [];
  for (let dieAt = 1; ; dieAt++) {
    const lake = join(home, `lake-${dieAt}`);
    await cp(before, lake, { recursive: true, preserveTimestamps: true });
    if ((await publishAndDie(database, lake, dieAt)) === 'done') break;
    const seen = await lakeViews(lake);
    expect([oldViews, newViews], `killed before touch ${dieAt}`).toContainEqual(seen);
    states.push(seen.length === newViews.length && seen.at(-1)?.[1] === '2026-12-01' ? 'new' : 'old');
    doubled.push((await countedTwice(lake)) > 0);

    const next = await liveWarehouse(database);
    await publishLake(next, { directory: lake, shard: undefined, signal: new AbortController().signal });
    await closeNow(next);
    expect(await lakeViews(lake)).toEqual(newViews);
    const { views, days } = await readManifests(lake);
    expect(await dataFiles(lake)).toEqual([...views, ...days].map(({ file }) => file).sort());
    expect(await readdir(join(lake, '_manifests'))).toEqual(['all.json']);
  }
  // Once committed it stays so, and a crash on either side of it was tried.
  expect(states.join(' ')).toMatch(/^(old )+(new ?)+$/);
  // Whoever takes all files there are counts twice only between the first rename and the last removal.
  const first = doubled.indexOf(true);
  expect(first).toBeGreaterThan(doubled.length / 2);
  expect(doubled.slice(0, first)).not.toContain(true);
}, 300_000);
