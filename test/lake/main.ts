/**
 * `npm run test:lake`: reads lakes with the engines that people have, installed from their packages into a temporary
 * environment (`LAKE_VENV` names one to keep). With `--quick`, without Spark and with fewer trials, as CI runs it.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { openWarehouse } from '../../src/warehouse/open.js';
import { publish as publishHistory } from '../../src/warehouse/publish.js';
import { answerOf } from '../duckdb.js';

const HERE = import.meta.dirname;
const QUICK = process.argv.includes('--quick');
const [KILLS, SHARDS, ROUNDS] = QUICK ? [6, 4, 3] : [60, 8, 10];
const DAYS_A_MONTH = [30, 31, 1] as const;

const home = mkdtempSync(join(tmpdir(), 'readership-lake-'));
const venv = process.env['LAKE_VENV'] ?? join(home, 'venv');
const port = 20_000 + (process.pid % 20_000);
const environment = {
  ...process.env,
  ...{ AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret-key', AWS_REGION: 'us-east-1' },
  LAKE_ENDPOINT: `http://127.0.0.1:${port}`,
  // spark-submit looks for Spark in the first Python on the path.
  PATH: `${join(venv, 'bin')}:${process.env['PATH'] ?? ''}`,
  PYTHONPATH: '',
};
const children: ChildProcess[] = [];

let passed = 0;
function pass(what: string): void {
  passed++;
  process.stdout.write(`ok  ${what}\n`);
}

function install(): void {
  if (!existsSync(join(venv, 'bin/python'))) run('python3', '-m', 'venv', venv);
  const files = ['requirements.txt', ...(QUICK ? [] : ['requirements-spark.txt'])];
  const named = files.flatMap((file) => ['--requirement', join(HERE, file)]);
  run(join(venv, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', ...named);
}

function run(command: string, ...values: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, values, { encoding: 'utf8', env: environment });
  if (status !== 0) throw new Error(`${command} ${values.join(' ')} failed:\n${stderr.slice(-3000)}`);
  return stdout;
}

/** The rows, the views by people, all views, and the days that every engine must find. */
type Sums = readonly [rows: number, human: number, total: number, days: number];

/** Queries the engines, one query after another, in one process that keeps them warm. */
function startEngines() {
  const values = [join(HERE, 'engines.py'), ...(QUICK ? [] : ['--spark'])];
  const child = spawn(join(venv, 'bin/python'), values, {
    env: environment,
    stdio: ['pipe', 'pipe', 'ignore'],
    // ClickHouse reads no file outside the directory it was started in.
    cwd: home,
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async <Answer = Record<string, number[]>>(
    question: Record<string, string>,
    form: z.ZodType<Answer> = z.record(z.string(), z.array(z.int())) as unknown as z.ZodType<Answer>,
  ): Promise<Answer> => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    for (;;) {
      const { value = '', done } = (await lines.next()) as IteratorResult<string, undefined>;
      if (done === true) throw new Error(`the engines ended at ${JSON.stringify(question)}`);
      if (!value.startsWith('{') && !value.startsWith('[')) continue;
      const answer: unknown = JSON.parse(value);
      const error = z.object({ error: z.string() }).safeParse(answer);
      if (error.success) throw new Error(`${JSON.stringify(question)}: ${error.data.error}`);
      return form.parse(Array.isArray(answer) ? {} : answer);
    }
  };
}

/** Three months of some projects: on the first day of the last month, rounds change views. */
async function makeDatabase(path: string): Promise<void> {
  const warehouse = await openWarehouse(path, { command: 'test', now: () => new Date(), maxWaitMs: 0 });
  await warehouse.exclusive(async (connection) => {
    await connection.run(`
      INSERT INTO page_views
      SELECT 'prj_' || p, DATE '2026-09-01' + d::INTEGER, '/docs/ü''s-' || n, n % 7, n % 5, n % 7 + n % 5
      FROM range(${DAYS_A_MONTH.reduce((sum, days) => sum + days, 0)}) AS days (d), range(24) AS projects (p), range(40) AS pages (n)`);
    await connection.run(`
      INSERT INTO day_loads (project, day, state, attempted_at, loaded_at, human, ai, total, pages)
      SELECT project, day, 'final', now()::TIMESTAMP, now()::TIMESTAMP, sum(human), sum(ai), sum(total), count(*)
      FROM page_views GROUP BY ALL`);
  });
  await warehouse.close();
}

function copyDatabase(database: string, copy: string): void {
  cpSync(database, copy);
  rmSync(`${copy}.wal`, { force: true });
  if (existsSync(`${database}.wal`)) cpSync(`${database}.wal`, `${copy}.wal`);
}

async function sumsOf(database: string): Promise<Sums> {
  const days = '(SELECT count(*) FROM day_loads)::INT AS days';
  const sums = 'count(*)::INT AS rows, sum(human)::INT AS human, sum(total)::INT AS total';
  const [row = {}] = await answerOf(database, `SELECT ${sums}, ${days} FROM page_views`);
  return z.tuple([z.int(), z.int(), z.int(), z.int()]).parse(Object.values(row));
}

const publisher = (...values: readonly (string | number)[]): string[] => [
  ...['--import', 'tsx', join(HERE, 'publisher.ts')],
  ...values.map(String),
];

async function publish(database: string, place: string, shard = '', rounds = 1, dieAt = 0): Promise<boolean> {
  const values = publisher(database, place, shard, rounds, dieAt);
  const child = spawn(process.execPath, values, { stdio: 'inherit', env: environment });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (signal !== 'SIGKILL') assert.equal(code, 0, 'the publisher failed');
  return signal === 'SIGKILL';
}

/** Its words, as it must refuse. */
function refusalToPublish(database: string, place: string): string {
  const values = publisher(database, place, '', 1, 0);
  const { status, stderr } = spawnSync(process.execPath, values, { encoding: 'utf8', env: environment });
  assert.notEqual(status, 0, place);
  return stderr;
}

/** The entries of the log of a table, in order, each with its lines. */
const entriesOf = (log: string) =>
  readdirSync(log)
    .filter((entry) => /^\d{20}\.json$/.test(entry))
    .sort()
    .map((name) => {
      const lines = readFileSync(join(log, name), 'utf8').trim().split('\n');
      return {
        name,
        number: Number(name.slice(0, 20)),
        lines: lines.map((line): unknown => JSON.parse(line)),
      };
    });

const everyEngine = (
  answers: Record<string, number[]>,
  expected: readonly number[],
  what: string,
  least = 6,
) => {
  assert.ok(Object.keys(answers).length >= least);
  for (const [engine, answer] of Object.entries(answers))
    assert.deepEqual(answer, [...expected], `${engine}: ${what}`);
};

async function main(): Promise<void> {
  install();
  process.stdout.write('packages are installed\n');
  const options = { stdio: 'ignore', env: environment } as const;
  children.push(spawn(join(venv, 'bin/moto_server'), ['-p', String(port)], options));
  const ask = startEngines();
  const database = join(home, 'warehouse.duckdb');
  await makeDatabase(database);

  const lake = join(home, 'lake');
  await publish(database, lake);
  everyEngine(await ask({ ask: 'read', lake }), await sumsOf(database), 'a first publish');
  await publish(database, lake, '', 12);
  everyEngine(await ask({ ask: 'read', lake }), await sumsOf(database), 'after a checkpoint');
  pass('every engine reads the rows and sums of the database, also from a checkpoint');

  for (const [engine, [read = 0, all = 0]] of Object.entries(
    await ask({ ask: 'files', lake, day: '2026-10-05' }),
  ))
    assert.ok(read === 1 && all === 3, `${engine} read ${read} of ${all} files for one day`);
  pass('a day costs the files of its month');

  const before = await sumsOf(database);
  await ask({ ask: 'open', lake });
  await publish(database, lake, '', 3);
  for (const [engine, answer] of Object.entries(await ask({ ask: 'finish' })))
    assert.deepEqual(answer, before.slice(0, 2), `${engine} opened before a publish`);
  pass('a reader who opened before a publish finishes with what was there');

  // Each kill starts with the same lake and database, and comes a little later.
  let killed = 0;
  for (let dieAt = 1; killed < KILLS; dieAt += QUICK ? 9 : 1) {
    const [copy, own] = [join(home, 'killed'), join(home, 'killed.duckdb')];
    rmSync(copy, { recursive: true, force: true });
    cpSync(lake, copy, { recursive: true, preserveTimestamps: true });
    copyDatabase(database, own);
    const old = await sumsOf(own);
    // After the last moment of a publish, the first is tried again.
    const isKilled = await publish(own, copy, '', 1, dieAt);
    if (!isKilled) dieAt = 0;
    if (!isKilled) continue;
    killed++;
    const next = await sumsOf(own);
    const answers = await ask({ ask: 'read', lake: copy });
    const seen = new Set(Object.values(answers).map((answer) => JSON.stringify(answer)));
    assert.equal(seen.size, 1, `killed at touch ${dieAt}: ${JSON.stringify(answers)}`);
    assert.ok(
      [old, next].some((sums) => seen.has(JSON.stringify(sums))),
      `killed at touch ${dieAt}: ${[...seen].join()}`,
    );
  }
  pass(`${killed} kills leave every engine with one committed state`);

  await everyVersion(database);
  await boundsLeftOut(ask, database);
  await oddPlaces(ask, database);
  await otherWriters(ask, database);
  await shardsAtOnce(ask, join(home, 'shards'));
  await onStore(ask, database);
  if (!QUICK) {
    const job = join(HERE, '../../deploy/spark-report.py');
    const packages = ['--packages', 'io.delta:delta-spark_4.2_2.13:4.4.0'];
    const values = [...packages, '--conf', 'spark.ui.enabled=false', job, lake, '2026-10-05'];
    const said = run(join(venv, 'bin/spark-submit'), ...values);
    assert.match(said, /2026-10[\s\S]+\/docs\/ü's-\d+/);
    pass('the example job of Spark answers');
  }
  process.stdout.write(`all ${passed} checks of the lake hold\n`);
}

/** The versions of DuckDB that docs/readers.md says read everything; with `--quick`, the first and the last of them. */
async function everyVersion(database: string): Promise<void> {
  const history = join(home, 'history.duckdb');
  const warehouse = await openWarehouse(database, { command: 'test', now: () => new Date(), maxWaitMs: 0 });
  await publishHistory(warehouse, history);
  await warehouse.close();
  const page = readFileSync(join(HERE, '../../docs/readers.md'), 'utf8');
  const listed = /\| (?<versions>[\d., ]+) \| every table, view and macro/.exec(page)?.groups?.['versions'];
  const versions = z.array(z.string().regex(/^\d+\.\d+\.\d+$/)).parse(listed?.trim().split(', '));
  assert.ok(versions.length >= 5);
  for (const version of QUICK ? [versions[0], versions.at(-1)] : versions) {
    const target = join(home, `duckdb-${version}`);
    const values = ['install', '--quiet', '--no-deps', '--target', target, `duckdb==${version}`];
    run(join(venv, 'bin/pip'), ...values);
    environment.PYTHONPATH = target;
    assert.equal(run('python3', join(HERE, 'readers.py'), history).trim(), version);
  }
  environment.PYTHONPATH = '';
  pass('every listed version of DuckDB runs every table, view and macro');
}

/** Longer than the bounds that DuckDB writes, and without a next string to shorten it to. */
const NO_BOUND = '\u{10FFFF}'.repeat(100);

/** A month of two row groups, one of which has no greatest path. */
async function boundsLeftOut(ask: ReturnType<typeof startEngines>, database: string): Promise<void> {
  const [own, lake] = [join(home, 'bounds.duckdb'), join(home, 'bounds')];
  copyDatabase(database, own);
  await answerOf(
    own,
    `INSERT INTO page_views
     SELECT 'prj_0', DATE '2026-09-02', if(n = 0, '${NO_BOUND}', '/long/' || n), 1, 1, 2
     FROM range(200_000) AS pages (n)`,
  );
  await publish(own, lake);
  for (const path of [NO_BOUND, '/long/199999', '/docs/ü-1']) {
    const expected = [path.startsWith('/docs') ? 0 : 1];
    everyEngine(await ask({ ask: 'lookup', lake, path }), expected, path.slice(0, 20), 5);
  }
  pass('every engine finds a path that has no bound, and those beside it');
}

/** Directories whose names some engines read as something else are refused; all others can be read by every engine. */
async function oddPlaces(ask: ReturnType<typeof startEngines>, database: string): Promise<void> {
  const words = /not every program can read a lake whose address contains/;
  for (const name of ['a lake', 'lake=1', 'läke', 'lake%41', 'lake#1', 'lake?x', '{a}', '*a', 'a"b', '[a]'])
    assert.match(refusalToPublish(database, join(home, name)), words, name);
  for (const name of ["o'lake", 'a+b,c', '(a)&b;c:d', 'a@~']) {
    await publish(database, join(home, name));
    everyEngine(await ask({ ask: 'read', lake: join(home, name) }), await sumsOf(database), name);
  }
  pass('a directory with an odd name is read by every engine, or refused');
}

/** What Readership cannot follow, and the words of the refusal. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  'forbid removal': /delta\.appendOnly[^]*SET TBLPROPERTIES/,
  'add a constraint': /constraint few[^]*DROP CONSTRAINT few/,
  'deletion vectors': /feature deletionVectors[^]*DROP FEATURE deletionVectors/,
};

/** The digest of the stored rows that `rows` in engines.py computes of a lake. */
async function digestOf(database: string): Promise<string> {
  const sql = "SELECT concat_ws('|', project, day, path, human, ai, total) AS line FROM page_views";
  const lines = (await answerOf(database, sql)).map(({ line }) => z.string().parse(line));
  return createHash('sha256').update(lines.sort().join('\n')).digest('hex');
}

/** After each operation of another program, two publications bring back the rows of the database. */
async function otherWriters(ask: ReturnType<typeof startEngines>, database: string): Promise<void> {
  const [lake, own, copy] = [join(home, 'foreign'), join(home, 'foreign.duckdb'), join(home, 'foreign-copy')];
  copyDatabase(database, own);
  await publish(own, lake, '', 2);
  const names = Object.keys(await ask({ ask: 'operations' }, z.record(z.string(), z.unknown())));
  assert.ok(names.length >= 16);
  for (const name of names) {
    rmSync(copy, { recursive: true, force: true });
    cpSync(lake, copy, { recursive: true, preserveTimestamps: true });
    const database = join(home, 'foreign-copy.duckdb');
    copyDatabase(own, database);
    await ask({ ask: 'foreign', lake: copy, name });
    const words = REFUSED[name];
    if (words !== undefined) {
      assert.match(refusalToPublish(database, copy), words, name);
      continue;
    }
    for (const publication of [1, 2]) {
      await publish(database, copy);
      const digest = await digestOf(database);
      const answers = await ask({ ask: 'rows', lake: copy }, z.record(z.string(), z.string()));
      assert.ok(Object.keys(answers).length >= 4);
      for (const [engine, found] of Object.entries(answers))
        assert.equal(found, digest, `${engine} after ${name}, publication ${publication}`);
    }
    checkLog(join(copy, 'views/_delta_log'));
  }
  pass(`${names.length} operations of other programs: two right publications follow, or a refusal by name`);
}

const pathOf = z.object({ path: z.string() });
const logEntry = z.object({
  commitInfo: z.object({}).optional(),
  protocol: z.object({ minReaderVersion: z.int(), minWriterVersion: z.int() }).optional(),
  add: pathOf
    .extend({
      size: z.int(),
      modificationTime: z.int(),
      dataChange: z.boolean(),
      partitionValues: z.object({ month: z.string() }),
    })
    .optional(),
  remove: pathOf.extend({ deletionTimestamp: z.int(), dataChange: z.boolean() }).optional(),
});

/** The log as the protocol demands: no version is missing, nothing is added twice, and only what is there is removed. */
function checkLog(log: string): void {
  const entries = entriesOf(log);
  const active = new Set<string>();
  for (const [index, { name, number, lines }] of entries.entries()) {
    if (entries[0]?.number === 0) assert.equal(number, index, 'a version is missing');
    const touched = new Set<string>();
    for (const line of lines) {
      const { add, remove } = logEntry.parse(line);
      for (const path of [add?.path, remove?.path]) {
        if (path === undefined) continue;
        assert.ok(!touched.has(path), `${name} has ${path} twice`);
        touched.add(path);
      }
      if (add) active.add(add.path);
      if (remove && index > 0 && entries.length === index + 1)
        assert.ok(active.has(remove.path), `${name} removes ${remove.path}, which is not there`);
      if (remove) active.delete(remove.path);
    }
  }
}

async function shardsAtOnce(ask: ReturnType<typeof startEngines>, lake: string): Promise<void> {
  const databases = Array.from({ length: SHARDS }, (_, index) => join(home, `shard-${index + 1}.duckdb`));
  const [first = '', ...others] = databases;
  await makeDatabase(first);
  for (const other of others) copyDatabase(first, other);
  await Promise.all(databases.map((each, index) => publish(each, lake, `${index + 1}/${SHARDS}`, ROUNDS)));
  // Every database has all projects and went through the same rounds, so the lake matches any of them.
  everyEngine(await ask({ ask: 'read', lake }), await sumsOf(first), `${SHARDS} shards, ${ROUNDS} rounds`);
  // The documented query of a month: the ten most read pages.
  const page = readFileSync(join(HERE, '../../docs/scale.md'), 'utf8');
  const answered: (number[] | undefined)[] = [];
  for (const [, sql = ''] of page.matchAll(/```sql\n(SELECT[^`]*delta_scan[^`]*)```/g))
    answered.push((await ask({ ask: 'sql', sql: sql.replaceAll('/srv/lake', lake) }))['duckdb']);
  assert.deepEqual(answered, [[10]]);
  pass('the documented query answers, over all shards');

  const form = z.object({ txn: z.object({ appId: z.string(), version: z.int() }).optional() });
  const last = new Map<string, number>();
  for (const line of entriesOf(join(lake, 'views/_delta_log')).flatMap(({ lines }) => lines)) {
    const { txn } = form.parse(line);
    if (txn === undefined) continue;
    assert.equal(txn.version, (last.get(txn.appId) ?? 0) + 1, txn.appId);
    last.set(txn.appId, txn.version);
  }
  assert.equal(last.size, SHARDS);
  // One of them created the table, which is one more commit.
  const rounds = [...last.values()].sort((a, b) => a - b);
  assert.deepEqual(rounds, [...Array.from({ length: SHARDS - 1 }, () => ROUNDS), ROUNDS + 1]);
  pass(`${SHARDS} shards × ${ROUNDS} rounds at once commit each round once`);
}

async function onStore(ask: ReturnType<typeof startEngines>, database: string): Promise<void> {
  const make = `import boto3; boto3.client('s3', endpoint_url='${environment.LAKE_ENDPOINT}').create_bucket(Bucket='lake')`;
  run(join(venv, 'bin/python'), '-c', make);
  const lake = 's3://lake/docs';
  await publish(database, lake, '', 2);
  everyEngine(await ask({ ask: 'read', lake }), await sumsOf(database), 'in a bucket');
  pass('every engine but Spark reads the lake of a bucket');
}

mkdirSync(home, { recursive: true });
try {
  await main();
} finally {
  for (const child of children) child.kill();
  rmSync(home, { recursive: true, force: true });
}
