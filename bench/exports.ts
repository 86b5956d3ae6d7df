import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays, type Day } from '../src/day.js';
import {
  here,
  inTemporaryDirectory,
  type Measured,
  measure,
  node,
  type Program,
  readership,
  readershipOf,
  withServer,
} from './processes.js';
import { alternate, print, seconds, thousands } from './rounds.js';
import { configure, firstOf } from './workspace.js';

const ROUNDS = 5;
const PATHS = 5_000;

interface Rivals {
  /** Whether dlt and a plain script run too. */
  readonly withRivals: boolean;
  /** Built checkouts of other versions, which run too. */
  readonly checkouts: readonly string[];
}

/** Compares exports with the bare loop of their requests and with rivals. */
export async function measureExports({ withRivals, checkouts }: Rivals): Promise<void> {
  print('export', 'program', 'time', 'processor', 'memory', 'fsyncs', 'time of the export over it');
  print('---', '---', '--:', '--:', '--:', '--:', '--:');
  await inTemporaryDirectory(async (venv) => {
    const python = withRivals ? installRivals(venv) : undefined;
    for (const latencyMs of [0, 50])
      await withServer({ paths: PATHS, latencyMs }, (baseUrl) =>
        compareExports(`450,000 rows, ${latencyMs} ms`, { baseUrl, days: 90 }, ROUNDS, { python, checkouts }),
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

const NO_RIVALS = { python: undefined, checkouts: [] };

const compareExports = (
  what: string,
  { baseUrl, days, projects = 1 }: Exported,
  rounds: number,
  {
    python,
    checkouts,
  }: { readonly python: string | undefined; readonly checkouts: readonly string[] } = NO_RIVALS,
): Promise<void> =>
  inTemporaryDirectory(async (directory) => {
    let run = 0;
    const first = firstOf(days);
    const newWorkspace = async (history = {}) => {
      const own = join(directory, String(run++));
      await mkdir(own);
      await configure(own, baseUrl, first, projects, history);
      return own;
    };
    const script = (file: string) => async () => ({
      command: [python ?? '', here(file), baseUrl, first, String(days), await newWorkspace()],
    });
    const files = join(directory, 'files');
    const rivals = {
      dlt: script('dlt_export.py'),
      'plain script': script('plain_export.py'),
      'DuckDB, from files': async () => node(here('files.js'), files, await newWorkspace()),
    };
    if (python !== undefined) await saveResponses(baseUrl, first, days, files);
    const others = checkouts.map((checkout) => [
      checkout,
      // 0.4 sends 100 requests an hour unless it is told otherwise.
      async () => readershipOf(checkout, await newWorkspace({ requestsPerHour: 1_000_000 }), 'export'),
    ]);
    const programs = {
      'readership export': async () => readership(await newWorkspace(), 'export'),
      ...(Object.fromEntries(others) as Record<string, () => Promise<Program>>),
      'bare loop': () => Promise.resolve(node(here('bare-loop.js'), baseUrl, first, days * projects)),
      ...(python === undefined ? {} : rivals),
    };
    const measured = await alternate(programs, rounds);
    const fsyncs: Record<string, number | undefined> = {};
    for (const [name, program] of Object.entries(programs))
      ({ fsyncs: fsyncs[name] } = await measure(await program(), true));
    compare(what, measured, fsyncs);
  });

/** Writes each response of an export to a file, named for its day and offset. */
async function saveResponses(baseUrl: string, first: Day, days: number, directory: string): Promise<void> {
  await mkdir(directory);
  for (let index = 0; index < days; index++)
    for (let offset = 0, hasMore = true; hasMore; offset += 250) {
      const [from, to] = [addDays(first, index), addDays(first, index + 1)];
      const page = `dateFrom=${from}&dateTo=${to}&limit=250&offset=${offset}`;
      const body = await (await fetch(`${baseUrl}/v1/analytics/prj_0/views?${page}`)).text();
      await writeFile(join(directory, `${from}-${offset}.json`), body);
      ({ hasMore } = JSON.parse(body) as { hasMore: boolean });
    }
}

/** Installs dlt and what the plain script needs from their packages, and returns the Python that has them. */
function installRivals(directory: string): string {
  const run = (program: string, ...given: string[]) => {
    const { status, stderr } = spawnSync(program, given, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${program} ${given.join(' ')} failed: ${stderr}`);
  };
  run('python3', '-m', 'venv', directory);
  run(join(directory, 'bin', 'pip'), 'install', '--quiet', 'dlt[duckdb]', 'duckdb', 'pyarrow', 'aiohttp');
  return join(directory, 'bin', 'python');
}

/** A table of programs, with the time of the first relative to the others. */
function compare(
  what: string,
  measured: Readonly<Record<string, Measured>>,
  fsyncs: Readonly<Record<string, number | undefined>>,
): void {
  const own = Object.values(measured)[0]?.elapsedS ?? Number.NaN;
  for (const [name, { elapsedS, processorS, peakMb }] of Object.entries(measured))
    print(
      what,
      name,
      seconds(elapsedS),
      seconds(processorS),
      `${thousands(peakMb)} MB`,
      String(fsyncs[name] ?? ''),
      (own / elapsedS).toFixed(2),
    );
}
