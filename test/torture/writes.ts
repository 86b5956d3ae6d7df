/**
 * Kills at single changes of the live file, its log and their copies. A process commits days, and a shim between it and
 * the C library (`tear.c`) kills it at a chosen write, sync, rename or removal: before it, or halfway through it. The
 * database must then open with every day whose commit was reported, complete, and accept another.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { messageOf } from '../../src/errors.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import { Choice } from './choice.js';
import { type KilledChange, killedAt } from './shim.js';

const BUILT = fileURLToPath(new URL('../../dist/warehouse/open.js', import.meta.url));
/** After this many kills a new database is started, so that its first writes are tried too. */
const KILLS_A_DATABASE = 25;
/** Two days of the largest make the log large enough to be folded on close, and four while they are stored. */
const SIZES = [1, 300, 140_000] as const;

/**
 * Commits days with the given numbers of rows, from the day `first` on, and prints each when it is committed. At the end,
 * if `publishes` is true, publishes everything, which writes the live file again.
 */
const COMMIT = `
  import { writeSync } from 'node:fs';
  const [built, path, first, publishes, ...sizes] = process.argv.slice(1);
  const { openWarehouse } = await import(built);
  const { publish } = await import(built.replace('open.js', 'publish.js'));
  const warehouse = await openWarehouse(path, { command: 'torture', now: () => new Date(), maxWaitMs: 5000 });
  for (const [index, size] of sizes.entries()) {
    const day = Number(first) + index;
    await warehouse.transaction((transaction) =>
      transaction.execute(
        "INSERT INTO page_views SELECT 'p', DATE '2000-01-01' + $day::INTEGER, md5((i * 31 + $day)::VARCHAR), '/', i, $day::INTEGER, i FROM range($size::INTEGER) AS r(i)",
        { day, size: Number(size) },
      ),
    );
    writeSync(1, day + '\\n');
  }
  if (publishes === 'true') await publish(warehouse, path.replace('warehouse', 'history'), { isWhole: true });
  await warehouse.close();`;

interface Strike extends KilledChange {
  /** Whether the process publishes everything at its end. */
  readonly publishes: boolean;
}

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
      // Opening and committing make a few changes, a fold makes dozens.
      const change = choice.whole(1, choice.pick([12, 12, 80]));
      const strike = {
        ...{ change, isTorn: choice.chance(0.5), permille: choice.whole(0, 999) },
        publishes: choice.chance(0.5),
      };
      const file = join(directory, 'warehouse.duckdb');
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

async function commitAndDie(shim: string, path: string, first: number, sizes: number[], strike: Strike) {
  const values = [BUILT, path, first, strike.publishes, ...sizes].map(String);
  const child = spawn(process.execPath, ['--input-type=module', '--eval', COMMIT, ...values], {
    env: { PATH: process.env['PATH'], ...killedAt(shim, strike, dirname(path), ['warehouse.duckdb']) },
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

/** What is wrong with the database now. Adds the day that was in flight to `stored` if it was committed. */
async function wrongIn(path: string, stored: Map<number, number>, inFlight?: readonly [number, number]) {
  try {
    const options = { command: 'torture', now: () => new Date(), maxWaitMs: 5_000 };
    const warehouse = await openWarehouse(path, options);
    const days = await warehouse.query(DAYS, dayRow);
    await warehouse.close();
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
