/**
 * Kills at single changes of the history, its next version and the state. A process writes days, and a shim between it and
 * the C library (`tear.c`) kills it at a chosen write, sync, rename or removal: before it, or halfway through it. The
 * history must then open with every day that was reported, complete, and accept another.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { messageOf } from '../../src/errors.js';
import { exists } from '../../src/files.js';
import { openHistory } from '../../src/history/history.js';
import { Choice } from './choice.js';
import { type KilledChange, killedAt } from './shim.js';

const BUILT = fileURLToPath(new URL('../../dist/app/open.js', import.meta.url));
/** After this many kills a new database is started, so that its first writes are tried too. */
const KILLS_A_DATABASE = 25;
const SIZES = [1, 300, 140_000] as const;

/** Writes days with the given numbers of rows, from the day `first` on, each with a version of its own, and prints each then. */
const COMMIT = `
  import { writeSync } from 'node:fs';
  import { dirname } from 'node:path';
  const [built, path, first, ...sizes] = process.argv.slice(1);
  const { openStore } = await import(built);
  const from = (name) => import(built.replace('app/open.js', 'state/' + name));
  const [{ openState, createState }, { acquireWorker }] = [await from('open.js'), await from('lock.js')];
  const here = { machine: 'torture', host: 'torture', path: dirname(path) };
  const state = (await openState(dirname(path))) ?? (await createState(dirname(path), here));
  const worker = await acquireWorker(dirname(path), state, { command: 'torture', now: () => new Date(), maxWaitMs: 5000 });
  const history = openStore({ historyFile: path }, state, worker, {});
  for (const [index, size] of sizes.entries()) {
    const number = Number(first) + index;
    const day = new Date(Date.UTC(2000, 0, 1 + number)).toISOString().slice(0, 10);
    const paths = await history.pathsOf('p');
    const numbers = (of) => Float64Array.from({ length: Number(size) }, (_, i) => of(i));
    const ids = Int32Array.from(numbers((i) => paths.idOf('/' + ((i * 31 + number) % 200000))));
    const counts = { paths, ids, human: numbers((i) => i), ai: numbers(() => number), total: numbers((i) => i) };
    const now = new Date();
    const sums = { human: 0, ai: 0, total: 0, pages: Number(size) };
    const unattributed = { unattributed_human: 0, unattributed_ai: 0, unattributed_total: 0 };
    const times = { first_loaded_at: now, loaded_at: now, checked_at: now };
    const stored = { day, state: 'final', ...times, ...sums, ...unattributed, problem: null, nights_in_doubt: 0 };
    await history.put({ project: 'p', stored, counts });
    await history.write();
    writeSync(1, number + '\\n');
  }
  await history.close();
  await worker.release();
  state.close();`;

/**
 * Kills `kills` processes, each determined by the seed. Returns the number of processes killed, of torn writes, of
 * processes that ended before, and what was wrong afterwards.
 */
export async function killAtWrites(shim: string, seed: number, kills: number) {
  const choice = new Choice(seed);
  const violations: string[] = [];
  const done = { killed: 0, torn: 0, ended: 0 };
  while (done.killed < kills) {
    const directory = await mkdtemp(join(tmpdir(), 'readership-writes-'));
    const stored = new Map<number, number>();
    const until = Math.min(kills, done.killed + KILLS_A_DATABASE);
    for (let day = 0; done.killed < until; day += 10) {
      const sizes = Array.from({ length: choice.whole(1, 4) }, () => choice.pick(SIZES));
      const change = choice.whole(1, choice.pick([60, 300, 1_200]));
      const strike = {
        ...{ change, isTorn: choice.chance(0.5), permille: choice.whole(0, 999) },
      };
      const file = join(directory, 'history.duckdb');
      const { wasKilled, committed } = await commitAndDie(shim, file, day, sizes, strike);
      done.killed += wasKilled ? 1 : 0;
      done.torn += wasKilled && strike.isTorn ? 1 : 0;
      done.ended += wasKilled ? 0 : 1;
      for (const [index, size] of sizes.slice(0, committed).entries()) stored.set(day + index, size);
      const inFlight = sizes[committed];
      const next = inFlight === undefined ? undefined : ([day + committed, inFlight] as const);
      const wrong = await wrongIn(file, stored, next);
      violations.push(
        ...wrong.map((what) => `seed ${seed}, kill ${done.killed} (${JSON.stringify(strike)}): ${what}`),
      );
    }
    await rm(directory, { recursive: true });
  }
  return { ...done, violations };
}

async function commitAndDie(
  shim: string,
  path: string,
  first: number,
  sizes: number[],
  strike: KilledChange,
) {
  const values = [BUILT, path, first, ...sizes].map(String);
  const child = spawn(process.execPath, ['--input-type=module', '--eval', COMMIT, ...values], {
    env: {
      PATH: process.env['PATH'],
      ...killedAt(shim, strike, dirname(path), ['history.duckdb', 'state.db']),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (signal !== 'SIGKILL' && code !== 0)
    throw new Error(`the committing process ended with ${code ?? signal}`);
  return { wasKilled: signal === 'SIGKILL', committed: output.split('\n').length - 1 };
}

const dayRow = z.object({ day: z.int(), rows: z.int(), views: z.int() });
const DAYS = `
  SELECT (day - DATE '2000-01-01')::INTEGER AS day, count(*) AS rows, sum(human)::BIGINT AS views
  FROM page_views GROUP BY ALL ORDER BY ALL`;

/** The days of a history; none before its first version is in place. */
async function daysIn(path: string): Promise<z.infer<typeof dayRow>[]> {
  if (!(await exists(path))) return [];
  const history = await openHistory(path);
  return history.query(DAYS, dayRow).finally(() => {
    history.close();
  });
}

/** What is wrong with the history now. Adds the day that was in flight to `stored` if it was committed. */
async function wrongIn(path: string, stored: Map<number, number>, inFlight?: readonly [number, number]) {
  try {
    const days = await daysIn(path);
    if (inFlight !== undefined && days.some(({ day }) => day === inFlight[0])) stored.set(...inFlight);
    const found = new Map(days.map((day) => [day.day, day]));
    return [
      ...[...stored].flatMap(([day, size]) => {
        const { rows = 0, views = 0 } = found.get(day) ?? {};
        const isWhole = rows === size && views === (size * (size - 1)) / 2;
        return isWhole ? [] : [`day ${day} has ${rows} of ${size} rows`];
      }),
      ...days.filter(({ day }) => !stored.has(day)).map(({ day }) => `day ${day} was never committed`),
    ];
  } catch (error) {
    return [`the database does not open: ${messageOf(error)}`];
  }
}
