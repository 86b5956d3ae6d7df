/**
 * `npm run test:lake`: forty simulated nights of two workspaces that publish to one dataset, which the engines that people
 * have read meanwhile and after each night. They are installed from their packages into a temporary environment
 * (`LAKE_VENV` names one to keep). With `--quick`, without Spark and with fewer nights, as CI runs it.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SimulatedWorkspace } from './nights.js';
import { type Digests, install, type Python, startEngines, startWatcher } from './python.js';

const QUICK = process.argv.includes('--quick');
const NIGHTS = QUICK ? 12 : 40;
const WATCHERS = QUICK ? 1 : 3;
const BUCKET = 's3://bucket/dataset';

const home = mkdtempSync(join(tmpdir(), 'readership-lake-'));
const port = 20_000 + (process.pid % 20_000);
const access = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret-key', AWS_REGION: 'us-east-1' };
const endpoint = `http://127.0.0.1:${port}`;
const python: Python = {
  venv: process.env['LAKE_VENV'] ?? join(home, 'venv'),
  environment: { ...process.env, ...access, LAKE_ENDPOINT: endpoint },
};
const children: ChildProcess[] = [];

let passed = 0;
function pass(what: string): void {
  passed++;
  process.stdout.write(`ok  ${what}\n`);
}

async function startBucket(): Promise<void> {
  const options = { stdio: 'ignore', env: python.environment } as const;
  children.push(spawn(join(python.venv, 'bin/moto_server'), ['-p', String(port)], options));
  for (let attempt = 0; ; attempt++) {
    const isThere = await fetch(`${endpoint}/bucket`, { method: 'PUT' }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isThere) return;
    assert.ok(attempt < 1000, 'the S3 server did not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function main(): Promise<void> {
  install(python, ['requirements.txt', ...(QUICK ? [] : ['requirements-spark.txt'])]);
  await startBucket();
  const engines = startEngines(python, home, !QUICK);
  const workspaces = await SimulatedWorkspace.createAll(home);
  const directory = join(home, 'dataset');
  const environment = { ...access, AWS_ENDPOINT_URL_S3: endpoint };
  const watchers: ReturnType<typeof startWatcher>[] = [];
  /** Every state of the views of a month that was published. */
  const published = new Set<string>();
  for (let night = 0; night < NIGHTS; night++) {
    for (const workspace of workspaces) await workspace.load(night);
    const expected: Digests = Object.assign(
      {},
      ...(await Promise.all(workspaces.map((one) => one.digests()))),
    );
    for (const state of Object.entries(expected)) published.add(JSON.stringify(state));
    for (const place of [directory, BUCKET])
      await Promise.all(workspaces.map((workspace) => workspace.publish(place, environment)));
    for (const place of [directory, BUCKET])
      for (const [engine, found] of Object.entries(await engines.read(place)))
        assert.deepEqual(found, expected, `${engine} reads ${place} after night ${night}`);
    if (night === 0)
      for (const engine of ['duckdb', 'polars', 'pyarrow', 'clickhouse'])
        for (let count = 0; count < WATCHERS; count++)
          watchers.push(startWatcher(python, home, engine, directory));
  }
  pass(`after each of ${NIGHTS} nights, every engine reads the rows of the history`);
  for (const { engine, finish } of watchers) {
    const { reads, states, errors } = await finish().catch((e) => {
      console.log(String(e));
      return { reads: 0, states: [], errors: [] };
    });
    assert.deepEqual(errors, [], engine);
    console.log(engine, reads, states.length);
    for (const state of states) assert.ok(published.has(JSON.stringify(state)), `${engine}: ${state.join()}`);
  }
  for (const workspace of workspaces) await workspace.close();
  engines.close();
  process.stdout.write(`all ${passed} checks of the dataset hold\n`);
}

try {
  await main();
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
}
