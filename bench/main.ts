/**
 * `npm run bench -- [PART…] [--rivals] [--beside=CHECKOUT…] [--large]`: measures exports, nights and commands as whole
 * processes, with their children, on one machine with Linux. The parts are export, nights, start, queries and web; by
 * default, all of them. `--rivals` installs dlt, aiohttp, pyarrow and DuckDB for Python and compares exports with them;
 * `--beside` compares them with those of another version, in a checkout that is built; `--large` adds histories of 100
 * million rows. Compare ratios between machines.
 */
import { cpus } from 'node:os';
import { addDays } from '../src/day.js';
import { measureExports } from './exports.js';
import { here, inTemporaryDirectory, measure, node, readership, withServer } from './processes.js';
import { askHistory } from './questions.js';
import { alternate, print, seconds, thousands } from './rounds.js';
import { askWeb } from './web.js';
import { configure, firstOf, type Shape, withNights } from './workspace.js';

const PATHS = 5_000;
const LONG_TAIL = '200,000 pages, 4,000 viewed daily';

/** A site whose pages are all viewed daily, and one with a long tail. */
const SHAPES = {
  '5,000 pages, all viewed daily': { days: 4_000, paths: 5_000, daily: 5_000 },
  [LONG_TAIL]: { days: 1_650, paths: 200_000, daily: 2_000 },
};

const PARTS = {
  export: () => measureExports({ withRivals, checkouts }),
  nights: measureNights,
  start: measureStart,
  queries: measureQueries,
  web: measureWeb,
};

const values = process.argv.slice(2);
const withRivals = values.includes('--rivals');
const checkouts = values.flatMap((value) => /^--beside=(.+)$/.exec(value)?.[1] ?? []);
const isLarge = values.includes('--large');

async function measureNights(): Promise<void> {
  print('night', 'command', 'time', 'processor', 'memory');
  print('---', '---', '--:', '--:', '--:');
  const daily = (days: number): Shape => ({ days, paths: PATHS, daily: PATHS });
  await measureNight('1,000,000 rows', { ...daily(200), runs: 0 });
  await measureNight('20,000,000 rows', { ...daily(4_000), runs: 0 });
  if (isLarge) await measureNight('100,000,000 rows', { ...daily(20_000), runs: 0 });
  await measureNight('1,000,000 rows, 500,000 runs', { ...daily(200), runs: 500_000 });
  await measureNight('20,000,000 rows of 200,000 pages', { ...SHAPES[LONG_TAIL], runs: 0 });
  await measureNight('500 projects of 50 pages', {
    ...daily(60),
    paths: 25_000,
    daily: 25_000,
    projects: 500,
    runs: 0,
  });
}

const measureNight = (what: string, { runs, ...shape }: Shape & { readonly runs: number }): Promise<void> =>
  withServer({ ...shape, first: addDays(firstOf(shape.days), -1) }, (baseUrl) =>
    withNights(baseUrl, { ...shape, runs }, async (directory, restore) => {
      const night = (command: string) => async () => {
        await restore();
        return readership(directory, command);
      };
      const nothing =
        (...command: readonly string[]) =>
        () =>
          Promise.resolve(readership(directory, ...command));
      const measured = await alternate(
        {
          'export, a night': night('export'),
          'export, nothing changed': nothing('export'),
          'run, a night': night('run'),
          'run, nothing changed': nothing('run'),
          'report weekly': nothing('report', 'weekly'),
          status: nothing('status'),
          'sql "select 1"': nothing('sql', 'select 1'),
        },
        3,
      );
      for (const [name, { elapsedS, processorS, peakMb }] of Object.entries(measured))
        print(what, name, seconds(elapsedS), seconds(processorS), `${thousands(peakMb)} MB`);
    }),
  );

async function measureStart(): Promise<void> {
  print('command', 'time', 'processor', 'processor over `node -e 0`');
  print('---', '--:', '--:', '--:');
  await withServer({ paths: 300 }, (baseUrl) =>
    inTemporaryDirectory(async (directory) => {
      await configure(directory, baseUrl, firstOf(60));
      await measure(readership(directory, 'run'));
      const command =
        (...given: string[]) =>
        () =>
          Promise.resolve(readership(directory, ...given));
      const measured = await alternate(
        {
          'node -e 0': () =>
            Promise.resolve({ command: [process.execPath, '--import', here('usage.js'), '-e', '0'] }),
          '--version': () => Promise.resolve(node(here('../dist/cli.js'), '--version')),
          status: command('status'),
          'sql "select 1"': command('sql', 'select 1'),
          'report weekly': command('report', 'weekly'),
        },
        15,
      );
      const bare = measured['node -e 0']?.processorS ?? Number.NaN;
      for (const [name, { elapsedS, processorS }] of Object.entries(measured))
        print(`\`${name}\``, seconds(elapsedS), seconds(processorS), (processorS / bare).toFixed(1));
    }),
  );
}

const LARGE = {
  '100 projects of 1,000 pages': { days: 1_000, paths: 100_000, daily: 100_000, projects: 100 },
};

async function measureQueries(): Promise<void> {
  print('history', 'macro or view', 'first', 'then');
  print('---', '---', '--:', '--:');
  for (const [what, shape] of Object.entries({ ...SHAPES, ...(isLarge ? LARGE : {}) })) {
    const { rows, bytes, ms } = await askHistory(shape);
    const history = `${thousands(rows)} rows of ${what}, ${thousands(bytes / 1e6)} MB`;
    for (const [question, { first, again }] of Object.entries(ms))
      print(history, `\`${question}\``, `${first.toFixed(0)} ms`, `${again.toFixed(0)} ms`);
  }
}

async function measureWeb(): Promise<void> {
  print('history', 'page', 'first', 'then');
  print('---', '---', '--:', '--:');
  const shapes = {
    'like the sandbox: 188 days, 450 pages': { days: 188, paths: 450, daily: 300 },
    ...SHAPES,
  };
  for (const [what, shape] of Object.entries(shapes))
    for (const [page, { first, again }] of Object.entries(await askWeb(shape)))
      print(what, `\`${page}\``, `${first.toFixed(0)} ms`, `${again.toFixed(0)} ms`);
}

process.stdout.write(
  `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}\n`,
);
const named = values.filter((value) => !value.startsWith('--'));
for (const [part, work] of Object.entries(PARTS))
  if (named.length === 0 || named.includes(part)) {
    process.stdout.write('\n');
    await work();
  }
