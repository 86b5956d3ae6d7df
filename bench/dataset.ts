/**
 * `npm run bench:dataset -- [ROWS] [PROJECTS] [PAGES]`: what it costs to publish a Parquet dataset: the first time, with
 * nothing changed, and after a night. Ten projects of 5,000 pages a day, or as many as are given, for as many days as it
 * takes to get ROWS rows.
 */
import { readdir, stat } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { addDays, day } from '../src/day.js';
import { storeDay } from '../src/export/store-day.js';
import { datasetVersion, publishDataset } from '../src/history/dataset.js';
import { readSql } from '../src/columns.js';
import { filledIn } from '../src/history/duckdb.js';
import { openStore } from '../src/app/open.js';
import { acquireWorker } from '../src/state/lock.js';
import { createState } from '../src/state/open.js';
import { placeOf } from '../src/state/workspace.js';
import { countsOf } from '../test/history/stored-days.js';
import { changeHistory } from '../test/open-history.js';
import { inTemporaryDirectory } from './processes.js';

const [ROWS = 20_000_000, PROJECTS = 10, PAGES = 5_000] = process.argv.slice(2).map(Number);
const FIRST = day('2020-01-01');
const DAYS = Math.round(ROWS / PROJECTS / PAGES);
const FILL = readSql(import.meta.url, 'fill-dataset.sql');
const FILL_DAY_LOADS = readSql(import.meta.url, 'day-loads.sql');

async function timed(what: string, work: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  const seconds = [(performance.now() - startedMs) / 1_000, (user + system) / 1e6].map((one) =>
    one.toFixed(2),
  );
  process.stdout.write(`| ${what} | ${seconds[0]} s, ${seconds[1]} s of processor |\n`);
}

await inTemporaryDirectory(async (directory) => {
  const path = join(directory, 'history.duckdb');
  await changeHistory(path, filledIn(FILL, { first: FIRST, days: DAYS, projects: PROJECTS, paths: PAGES }));
  await changeHistory(path, FILL_DAY_LOADS);
  const state = await createState(directory, await placeOf(directory));
  const holder = { command: 'bench', now: () => new Date(), maxWaitMs: 0 };
  const history = openStore({ historyFile: path }, state, await acquireWorker(directory, state, holder), {});
  const location = join(directory, 'dataset');
  const projects = Array.from({ length: PROJECTS }, (_, index) => ({ id: `prj_${index}` }));
  const dataset = { location, projects };
  const { signal } = new AbortController();
  const publish = () => publishDataset(history, dataset, { isWhole: false, mayCreate: true, signal });
  process.stdout.write(
    `${ROWS} rows: ${PROJECTS} projects, ${PAGES} pages, ${DAYS} days; load ${loadavg()[0]}\n`,
  );
  await timed('the first time', publish);
  await timed('nothing changed', () => datasetVersion(history, dataset, undefined));
  const views = Array.from({ length: PAGES }, (_, index) => ({
    path: `/docs/page-${index}`,
    human: 3,
    ai: 2,
    total: 5,
  }));
  for (const { id } of projects)
    await storeDay(
      { history, state },
      { project: id, day: addDays(FIRST, DAYS - 2), now: new Date() },
      {
        counts: countsOf(views, await history.pathsOf(id)),
        totals: { human: 3 * PAGES, ai: 2 * PAGES, total: 5 * PAGES },
        unattributed: { human: 0, ai: 0, total: 0 },
        doubt: undefined,
      },
      'final',
    );
  await timed('after a night', publish);
  const entries = await readdir(location, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  process.stdout.write(`${files.length} files, ${Math.round(bytes / 1e6)} MB\n`);
  await history.close();
});
