/**
 * `npm run test:lake`: forty simulated nights of two workspaces that publish to one dataset, which the engines that people
 * have read meanwhile, and after each night. They are installed from their packages into a temporary environment
 * (`LAKE_VENV` names one to keep). With `--quick`, without Spark and with fewer nights, as CI runs it.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { publish as publishHistory } from '../../src/warehouse/publish.js';
import { SimulatedWorkspace, WORKSPACES } from './nights.js';
import { type Digests, install, type Python, run, startEngines, startWatcher } from './python.js';

const HERE = import.meta.dirname;
const QUICK = process.argv.includes('--quick');
const NIGHTS = QUICK ? 8 : 40;
const KILLS = QUICK ? 4 : 20;
const home = mkdtempSync(join(tmpdir(), 'readership-lake-'));
const directory = join(home, 'dataset');
const BUCKET = 's3://bucket/dataset';
/** The readers that go on reading, by the place that they read. */
const WATCHERS = ['duckdb', 'polars', 'pyarrow', 'clickhouse'].flatMap((engine) =>
  (QUICK ? [directory, BUCKET] : [directory, directory, BUCKET]).map((place) => ({ engine, place })),
);
const port = 20_000 + (process.pid % 20_000);
const endpoint = `http://127.0.0.1:${port}`;
const access = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret-key', AWS_REGION: 'us-east-1' };
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

/** The S3 server moto, with a bucket. */
async function startBucket(): Promise<void> {
  const options = { stdio: 'ignore', env: python.environment } as const;
  children.push(spawn(join(python.venv, 'bin/moto_server'), ['-p', String(port)], options));
  const create = () => fetch(`${endpoint}/bucket`, { method: 'PUT' });
  for (let attempt = 0; ; attempt++) {
    if ((await create().catch(() => undefined))?.ok === true) return;
    assert.ok(attempt < 1_000, 'the S3 server did not start');
    await setTimeout(50);
  }
}

/** What the histories of all workspaces make of the dataset. */
async function expectedDigests(workspaces: readonly SimulatedWorkspace[]): Promise<Digests> {
  const parts = await Promise.all(workspaces.map((workspace) => workspace.digests()));
  return Object.fromEntries(parts.flatMap((part) => Object.entries(part)));
}

type Engines = ReturnType<typeof startEngines>;

/** After each night, every engine reads the histories. Meanwhile, watchers see only what was published. */
async function nights(engines: Engines): Promise<void> {
  const workspaces = await Promise.all(WORKSPACES.map((_, index) => SimulatedWorkspace.open(home, index)));
  const watchers: ReturnType<typeof startWatcher>[] = [];
  const published = new Set<string>();
  for (let night = 0; night < NIGHTS; night++) {
    const start = performance.now();
    for (const workspace of workspaces) await workspace.load(night);
    const expected = await expectedDigests(workspaces);
    for (const state of Object.entries(expected)) published.add(JSON.stringify(state));
    for (const place of [directory, BUCKET]) {
      const environment = { ...access, AWS_ENDPOINT_URL_S3: endpoint };
      await Promise.all(workspaces.map((workspace) => workspace.publish(place, environment)));
      for (const [engine, found] of Object.entries(await engines.read(place)))
        assert.deepEqual(found, expected, `${engine} reads ${place} after night ${night}`);
    }
    const seconds = (performance.now() - start) / 1000;
    process.stdout.write(`    night ${night + 1} of ${NIGHTS}: ${seconds.toFixed(1)} s\n`);
    if (night === 0)
      watchers.push(...WATCHERS.map(({ engine, place }) => startWatcher(python, home, engine, place)));
  }
  pass(`after each of ${NIGHTS} nights, all engines read the histories of two workspaces in one dataset`);
  const months = new Set([...published].map((state) => state.split('"')[1]));
  const watched = await Promise.all(watchers.map(async (one) => ({ ...one, ...(await one.finish()) })));
  for (const { engine, place, reads, states, errors } of watched) {
    const name = `${engine} ${place === BUCKET ? 'in the bucket' : 'on disk'}`;
    for (const state of states) assert.ok(published.has(JSON.stringify(state)), `${name}: ${state.join()}`);
    assert.ok(states.length > months.size, `${name} saw no change in ${reads} reads`);
    // An engine may notice that a file was replaced while it read.
    assert.ok(errors.length < reads / 2, `${name} failed: ${errors.join('\n')}`);
    process.stdout.write(`    ${name}: ${reads} reads, ${errors.length} failed, ${states.length} states\n`);
    for (const error of new Set(errors)) process.stdout.write(`        ${error.slice(0, 200)}\n`);
  }
  pass(`${WATCHERS.length} readers saw only what was published, and no month half or twice`);
  const [workspace] = workspaces;
  assert.ok(workspace);
  await publishHistory(workspace.warehouse, join(home, 'history.duckdb'));
  for (const one of workspaces) await one.close();
}

/** Publications that are killed leave each file as it was or as it is to be, and the next one catches up. */
async function kills(engines: Engines): Promise<void> {
  const publish = (night: number, moment: number) => {
    const values = ['--import', 'tsx', join(HERE, 'publisher.ts'), home, 0, night, directory, moment];
    return spawnSync(process.execPath, values.map(String), { stdio: 'inherit' });
  };
  const digests = async (): Promise<Digests> => {
    const workspaces = await Promise.all(WORKSPACES.map((_, index) => SimulatedWorkspace.open(home, index)));
    const found = await expectedDigests(workspaces);
    for (const workspace of workspaces) await workspace.close();
    return found;
  };
  let killed = 0;
  let moment = 0;
  let before = await digests();
  for (let night = NIGHTS; killed < KILLS; night++) {
    const { signal, status } = publish(night, ++moment);
    const after = await digests();
    const answers = Object.entries(await engines.read(directory));
    if (signal === null) {
      assert.equal(status, 0);
      for (const [engine, found] of answers) assert.deepEqual(found, after, `${engine} after it caught up`);
      [before, moment] = [after, 0];
      continue;
    }
    assert.equal(signal, 'SIGKILL');
    killed++;
    const [[, first] = []] = answers;
    for (const [engine, found] of answers) {
      assert.deepEqual(found, first, engine);
      for (const [folder, digest] of Object.entries(found))
        assert.ok(digest === before[folder] || digest === after[folder], `${engine}: ${folder}`);
    }
    // What was not published this time is published with the next change.
    before = { ...first };
  }
  assert.equal(publish(NIGHTS + 1_000, 0).status, 0);
  const expected = await digests();
  for (const [engine, found] of Object.entries(await engines.read(directory)))
    assert.deepEqual(found, expected, engine);
  pass(`${killed} kills leave every file whole, and the next publication catches up`);
}

/** The queries of docs/scale.md have the same answers everywhere. */
async function questions(engines: Engines): Promise<void> {
  const page = readFileSync(join(HERE, '../../docs/scale.md'), 'utf8').replaceAll('/srv/dataset', directory);
  const blocks = [...page.matchAll(/^```sql\n-- (?<title>.+)\n(?<sql>[^]+?)^```$/gm)].map(
    ({ groups }) => [groups?.['title'] ?? '', groups?.['sql'] ?? ''] as const,
  );
  const dialects = { DuckDB: 'duckdb', ClickHouse: 'clickhouse', ...(!QUICK && { 'Spark SQL': 'spark' }) };
  const asked = blocks.filter(([title]) => title.endsWith('.'));
  assert.equal(asked.length, 4);
  const answers: (readonly [string, unknown[]])[] = [];
  for (const [title, engine] of Object.entries(dialects)) {
    const [, define = ''] = blocks.find((block) => block[0] === title) ?? [];
    assert.notEqual(define, '', title);
    await engines.sql(engine, define);
    for (const [question, sql] of asked) answers.push([question, await engines.sql(engine, sql)]);
  }
  for (const [question] of asked) {
    const [first = [], ...others] = answers.flatMap(([title, rows]) => (title === question ? [rows] : []));
    assert.ok(first.length > 0, question);
    for (const other of others) assert.deepEqual(other, first, question);
    pass(`${Object.keys(dialects).join(', ')}: ${question}`);
  }
}

/** The versions of DuckDB that docs/readers.md says read everything; with `--quick`, the first and the last of them. */
function everyVersion(): void {
  const page = readFileSync(join(HERE, '../../docs/readers.md'), 'utf8');
  const listed = /\| (?<versions>[\d., ]+) \| every table, view and macro/.exec(page)?.groups?.['versions'];
  const versions = z.array(z.string().regex(/^\d+\.\d+\.\d+$/)).parse(listed?.trim().split(', '));
  assert.ok(versions.length >= 5);
  for (const version of QUICK ? [versions.at(0), versions.at(-1)] : versions) {
    const target = join(home, `duckdb-${version}`);
    const values = ['install', '--quiet', '--no-deps', '--target', target, `duckdb==${version}`];
    run(join(python.venv, 'bin/pip'), values, python.environment);
    const environment = { ...python.environment, PYTHONPATH: target };
    const said = run('python3', [join(HERE, 'readers.py'), join(home, 'history.duckdb')], environment);
    assert.equal(said.trim(), version);
  }
  pass('every listed version of DuckDB runs every table, view and macro of the history');
}

try {
  install(python, ['requirements.txt', ...(QUICK ? [] : ['requirements-spark.txt'])]);
  process.stdout.write('packages are installed\n');
  await startBucket();
  const engines = startEngines(python, home, !QUICK);
  await nights(engines);
  await kills(engines);
  await questions(engines);
  engines.close();
  everyVersion();
  process.stdout.write(`all ${passed} checks hold\n`);
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
}
