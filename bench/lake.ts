/**
 * `npm run bench:lake -- [ROWS] [PROJECTS] [PAGES]`: sizes and times of the history and lake on one
 * machine, for docs/scale.md. Ten projects of 5,000 pages a day each, or as many as are given, for
 * as many days as it takes to get ROWS rows. If BENCH_LAKE is set, the lake is there, and
 * only the lake is measured.
 */
import { DuckDBInstance } from '@duckdb/node-api';
import { readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, day } from '../src/day.js';
import { Rows } from '../src/export/day-rows.js';
import { storeDay } from '../src/export/ledger.js';
import { publishLake } from '../src/warehouse/lake/lake.js';
import { openWarehouse } from '../src/warehouse/open.js';
import { publish } from '../src/warehouse/publish.js';
import { readSql } from '../src/warehouse/query.js';

const ROWS = Number(process.argv[2] ?? 20_000_000);
const PROJECTS = Number(process.argv[3] ?? 10);
const PATHS = Number(process.argv[4] ?? 5_000);
const FIRST = day('2020-01-01');

const print = (what: string, figure: string) => process.stdout.write(`| ${what} | ${figure} |\n`);
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6).toLocaleString('en-US')} MB`;

async function timed(what: string, work: () => Promise<unknown>, unit: 's' | 'ms' = 's'): Promise<void> {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  await work();
  const elapsedMs = performance.now() - startedMs;
  const { user, system } = process.cpuUsage(before);
  const processor = `${((user + system) / 1e6).toFixed(1)} s of processor`;
  print(
    what,
    unit === 's' ? `${(elapsedMs / 1000).toFixed(1)} s, ${processor}` : `${Math.round(elapsedMs)} ms`,
  );
}

const directory = await mkdtemp(join(tmpdir(), 'readership-bench-'));
const live = join(directory, 'warehouse.duckdb');
const history = join(directory, 'history.duckdb');
const keptLake = process.env['BENCH_LAKE'];
const lake = keptLake ?? join(directory, 'lake');
const warehouse = await openWarehouse(live, { command: 'bench', now: () => new Date(), maxWaitMs: 0 });

const days = Math.round(ROWS / PROJECTS / PATHS);
await warehouse.transaction(async (transaction) => {
  const values = { first: FIRST, days, projects: PROJECTS, paths: PATHS };
  await transaction.execute(readSql(import.meta.url, 'lake/fill.sql'), values);
});
await warehouse.transaction((transaction) => transaction.execute(readSql(import.meta.url, 'day-loads.sql')));
await warehouse.exclusive((connection) => connection.run('CHECKPOINT'));

const bringUp = () =>
  publishLake(warehouse, {
    place: { location: lake, keepReplacedMs: 0, credentials: {} },
    ...{ shard: undefined, source: 'bench', now: new Date(), signal: new AbortController().signal },
  });
const night = Array.from({ length: PATHS }, (_, index) => ({
  path: `/docs/page-${index}`,
  human: 3,
  ai: 2,
  total: 5,
}));
/** A night: the last days of all projects change. */
async function restate(): Promise<void> {
  for (let project = 0; project < PROJECTS; project++)
    await storeDay(
      warehouse,
      { project: `prj_${project}`, day: addDays(FIRST, days - 2), now: new Date() },
      {
        rows: new Rows(night),
        totals: { human: 3 * PATHS, ai: 2 * PATHS, total: 5 * PATHS },
        unattributed: { human: 0, ai: 0, total: 0 },
        doubt: undefined,
      },
      'final',
    );
}

process.stdout.write(`${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}\n\n`);
print('what', `${ROWS.toLocaleString('en-US')} rows: ${PROJECTS} projects, ${PATHS} pages, ${days} days`);
print('---', '---');
if (keptLake === undefined) await timed('publishing the history', () => publish(warehouse, history));
await timed('the lake, the first time', bringUp);
await timed('the lake, when nothing changed', bringUp);
await restate();
await timed('the lake, after a night', bringUp);
const files = readdirSync(lake, { recursive: true, withFileTypes: true }).filter((entry) =>
  entry.name.endsWith('.parquet'),
);
const lakeBytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
print('live file', megabytes(statSync(live).size));
if (keptLake === undefined) print('published history', megabytes(statSync(history).size));
const sizes = files
  .filter(({ parentPath }) => parentPath.includes('/views/month='))
  .map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
print(
  'largest and smallest file of views',
  [Math.max(...sizes), Math.min(...sizes)].map(megabytes).join(', '),
);
print('memory at its highest', megabytes(process.resourceUsage().maxRSS * 1024));
print(`lake, ${files.length} files`, megabytes(lakeBytes));
print('load of the machine', loadavg()[0]?.toFixed(1) ?? '');
await warehouse.close();

if (keptLake !== undefined) {
  await rm(directory, { recursive: true });
  process.exit();
}
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
await connection.run(`ATTACH '${history}' AS history (READ_ONLY)`);
const parquet = `read_parquet('${lake}/views/*/*.parquet', hive_partitioning = true)`;
const lastMonth = addDays(FIRST, days - 40).slice(0, 7);
const monthOf = (views: string, where: string) =>
  `SELECT path, sum(total) AS views FROM ${views} WHERE project = 'prj_3' AND ${where} GROUP BY path ORDER BY views DESC LIMIT 10`;
const ask = (what: string, sql: string) => timed(what, () => connection.runAndReadAll(sql), 'ms');
for (const attempt of ['cold', 'warm']) {
  await ask(
    `views a month, from the history (${attempt})`,
    `SELECT date_trunc('month', day), sum(total) FROM history.page_views GROUP BY ALL`,
  );
  await ask(
    `views a month, from the lake (${attempt})`,
    `SELECT month, sum(total) FROM ${parquet} GROUP BY ALL`,
  );
  await ask(
    `most read pages of a month, from the history (${attempt})`,
    monthOf('history.page_views', `strftime(day, '%Y-%m') = '${lastMonth}'`),
  );
  await ask(
    `most read pages of a month, from the lake (${attempt})`,
    monthOf(parquet, `month = '${lastMonth}'`),
  );
}
connection.closeSync();
instance.closeSync();
await rm(directory, { recursive: true });
