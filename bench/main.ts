/**
 * `npm run bench -- [PART…] [--dlt] [--large]`: measures exports, nights and commands as whole processes on one
 * machine. The parts are export, nights, start, queries and web; by default, all of them. `--dlt` installs dlt from its
 * package and compares with it; `--large` adds histories of 100 million rows. Compare ratios between machines.
 */
import { spawnSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import {
  here,
  inTemporaryDirectory,
  type Measured,
  measure,
  median,
  node,
  type Program,
  readership,
  withServer,
} from './processes.js';
import { askHistory } from './questions.js';
import { askWeb } from './web.js';
import { configure, firstOf, withNights } from './workspace.js';

const ROUNDS = 5;
const PATHS = 5_000;
const PARTS = {
  export: measureExports,
  nights: measureNights,
  start: measureStart,
  queries: measureQueries,
  web: measureWeb,
};

const values = process.argv.slice(2);
const [withDlt, isLarge] = ['--dlt', '--large'].map((flag) => values.includes(flag));

const print = (...cells: readonly string[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
const thousands = (value: number) => Math.round(value).toLocaleString('en-US');
const seconds = (value: number) => `${value.toFixed(2)} s`;

/** Medians of several runs of each program, in turn in each round, so that all run under the same conditions. */
async function alternate(
  programs: Readonly<Record<string, () => Promise<Program>>>,
  rounds: number,
): Promise<Record<string, Measured>> {
  const entries = Object.entries(programs);
  const runs = new Map<string, Measured[]>(entries.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const [name, program] of entries) runs.get(name)?.push(await measure(await program()));
  const medians = [...runs].map(([name, of]) => {
    const middle = (key: 'elapsedS' | 'processorS' | 'peakMb') => median(of.map((run) => run[key]));
    return [
      name,
      { elapsedS: middle('elapsedS'), processorS: middle('processorS'), peakMb: middle('peakMb') },
    ];
  });
  return Object.fromEntries(medians) as Record<string, Measured>;
}

/** A table of programs, with the time of the first relative to the others. */
function compare(what: string, measured: Readonly<Record<string, Measured>>): void {
  const own = Object.values(measured)[0]?.elapsedS ?? Number.NaN;
  for (const [name, { elapsedS, processorS, peakMb }] of Object.entries(measured))
    print(
      what,
      name,
      seconds(elapsedS),
      seconds(processorS),
      `${thousands(peakMb)} MB`,
      (own / elapsedS).toFixed(2),
    );
}

async function measureExports(): Promise<void> {
  print('export', 'program', 'time', 'processor', 'memory', 'time of the export over it');
  print('---', '---', '--:', '--:', '--:', '--:');
  await inTemporaryDirectory(async (venv) => {
    const python = withDlt === true ? installDlt(venv) : undefined;
    for (const latencyMs of [0, 50])
      await withServer({ paths: PATHS, latencyMs }, (baseUrl) =>
        compareExports(`450,000 rows, ${latencyMs} ms`, { baseUrl, days: 90 }, ROUNDS, python),
      );
  });
  await withServer({ paths: PATHS }, (baseUrl) =>
    compareExports('5,000,000 rows, 0 ms', { baseUrl, days: 1_000 }, 3),
  );
  await withServer({ paths: 50 }, (baseUrl) =>
    compareExports('4,000 days of 50 pages, 0 ms', { baseUrl, days: 4_000 }, 3),
  );
  await withServer({ paths: 50, latencyMs: 50 }, (baseUrl) =>
    compareExports('20 projects of 20 days, 50 ms', { baseUrl, days: 20, projects: 20 }, 3),
  );
  await withServer({ paths: 300 }, (baseUrl) =>
    inTemporaryDirectory(async (directory) => {
      await configure(directory, baseUrl, firstOf(180));
      const { calls, fsyncs } = await measure(readership(directory, 'export'), true);
      process.stdout.write(
        `\n180 days: ${calls} calls of DuckDB, ${fsyncs ?? 'unknown'} times waited for the disk\n`,
      );
    }),
  );
}

interface Exported {
  readonly baseUrl: string;
  readonly days: number;
  readonly projects?: number;
}

const compareExports = (
  what: string,
  { baseUrl, days, projects = 1 }: Exported,
  rounds: number,
  python?: string,
): Promise<void> =>
  inTemporaryDirectory(async (directory) => {
    let run = 0;
    const first = firstOf(days);
    const newWorkspace = async () => {
      const own = join(directory, String(run++));
      await mkdir(own);
      await configure(own, baseUrl, first, projects);
      return own;
    };
    const dlt = async () => ({
      command: [python ?? '', here('dlt_export.py'), baseUrl, first, String(days), await newWorkspace()],
    });
    compare(
      what,
      await alternate(
        {
          'readership export': async () => readership(await newWorkspace(), 'export'),
          'bare loop': () => Promise.resolve(node(here('bare-loop.js'), baseUrl, first, days * projects)),
          ...(python === undefined ? {} : { dlt }),
        },
        rounds,
      ),
    );
  });

/** Installs dlt from its package, and returns the Python that has it. */
function installDlt(directory: string): string {
  const run = (program: string, ...given: string[]) => {
    const { status, stderr } = spawnSync(program, given, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${program} ${given.join(' ')} failed: ${stderr}`);
  };
  run('python3', '-m', 'venv', directory);
  run(join(directory, 'bin', 'pip'), 'install', '--quiet', 'dlt[duckdb]', 'pyarrow', 'aiohttp');
  return join(directory, 'bin', 'python');
}

async function measureNights(): Promise<void> {
  print('night', 'command', 'time', 'processor', 'memory');
  print('---', '---', '--:', '--:', '--:');
  const sizes = [1_000_000, 20_000_000, ...(isLarge === true ? [100_000_000] : [])];
  await withServer({ paths: PATHS }, async (baseUrl) => {
    for (const rows of sizes) await measureNight(baseUrl, rows, 0);
    await measureNight(baseUrl, 1_000_000, 500_000);
  });
}

const measureNight = (baseUrl: string, rows: number, runs: number): Promise<void> =>
  withNights(baseUrl, { rows, paths: PATHS, runs }, async (directory, restore) => {
    const night = (command: string) => async () => {
      await restore();
      return readership(directory, command);
    };
    const nothing = (command: string) => () => Promise.resolve(readership(directory, command));
    const measured = await alternate(
      {
        'export, a night': night('export'),
        'export, nothing changed': nothing('export'),
        'run, a night': night('run'),
        'run, nothing changed': nothing('run'),
      },
      3,
    );
    const what = `${thousands(rows)} rows${runs === 0 ? '' : `, ${thousands(runs)} runs`}`;
    for (const [name, { elapsedS, processorS, peakMb }] of Object.entries(measured))
      print(what, name, seconds(elapsedS), seconds(processorS), `${thousands(peakMb)} MB`);
  });

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

/** A site whose pages are all viewed daily, and one with a long tail. */
const SHAPES = {
  '5,000 pages, all viewed daily': { days: 4_000, paths: 5_000, daily: 5_000 },
  '200,000 pages, 4,000 viewed daily': { days: 1_650, paths: 200_000, daily: 2_000 },
};

const LARGE = {
  '100 projects of 1,000 pages': { days: 1_000, paths: 100_000, daily: 100_000, projects: 100 },
};

async function measureQueries(): Promise<void> {
  print('history', 'macro or view', 'first', 'then');
  print('---', '---', '--:', '--:');
  for (const [what, shape] of Object.entries({ ...SHAPES, ...(isLarge === true ? LARGE : {}) })) {
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
