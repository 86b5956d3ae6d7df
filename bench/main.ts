/**
 * `npm run bench`: all figures of the export, from one run on one machine. Times are medians of
 * several alternating runs and exclude process startup. Compare ratios, not milliseconds, between
 * machines.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Answered } from './scenarios/questions.js';

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const PATHS = 5_000;
const ROUNDS = 5;

interface Measured {
  readonly rows: number;
  readonly elapsedMs: number;
  readonly peakMb: number;
}

const print = (line: string) => process.stdout.write(`${line}\n`);
const thousands = (value: number) => Math.round(value).toLocaleString('en-US');
const rate = ({ rows, elapsedMs }: Measured) => rows / (elapsedMs / 1000);

async function run<Answer>(...values: (string | number)[]): Promise<Answer> {
  const child = fork(here('child.js'), values.map(String));
  const [answer] = (await once(child, 'message')) as [Answer];
  await once(child, 'exit');
  return answer;
}

async function withServer<Result>(
  latencyMs: number,
  work: (baseUrl: string) => Promise<Result>,
): Promise<Result> {
  const server: ChildProcess = fork(here('server.js'), [String(PATHS), String(latencyMs)]);
  const [baseUrl] = (await once(server, 'message')) as [string];
  try {
    return await work(baseUrl);
  } finally {
    server.disconnect();
  }
}

function median<Item>(items: readonly Item[], valueOf: (item: Item) => number): Item {
  const sorted = [...items].sort((left, right) => valueOf(left) - valueOf(right));
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('No measurements');
  return middle;
}

/** Alternates the export with the bare loops, so that all run under the same conditions. */
async function compareWithBareLoops(latencyMs: number, days: number): Promise<void> {
  await withServer(latencyMs, async (baseUrl) => {
    const rounds: Record<'fetch' | 'undici' | 'full', Measured>[] = [];
    for (let round = 0; round < ROUNDS; round++)
      rounds.push({
        fetch: await run('fetch', baseUrl, days),
        undici: await run('undici', baseUrl, days),
        full: await run('export', baseUrl, days),
      });
    const at = `${latencyMs} ms latency`;
    for (const loop of ['fetch', 'undici'] as const) {
      const ratios = rounds.map((round) => round.full.elapsedMs / round[loop].elapsedMs);
      const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
      const middle = median(ratios, Number);
      print(
        `| export time / bare ${loop} loop, ${at} | ${middle.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)}) |`,
      );
    }
    const rates = (['full', 'fetch', 'undici'] as const).map((which) =>
      thousands(
        rate(
          median(
            rounds.map((round) => round[which]),
            rate,
          ),
        ),
      ),
    );
    print(`| rows per second: export, fetch, undici; ${at} | ${rates.join(', ')} |`);
  });
}

async function compareWithNaiveScript(): Promise<void> {
  await withServer(0, async (baseUrl) => {
    const naive = await run<Measured>('naive', baseUrl, 4);
    const full = await run<Measured>('export', baseUrl, 90);
    print(
      `| export / naive script, by rows per second | ${(rate(full) / rate(naive)).toFixed(0)} times (${thousands(rate(naive))}) |`,
    );
  });
}

async function measureMemory(): Promise<void> {
  await withServer(0, async (baseUrl) => {
    const small = await run<Measured>('export', baseUrl, 100);
    const large = await run<Measured>('export', baseUrl, 1_000);
    print(
      `| peak memory, 0.5 M and 5 M rows | ${thousands(small.peakMb)} MB and ${thousands(large.peakMb)} MB |`,
    );
  });
}

async function measureNights(): Promise<void> {
  for (const rows of [1_000_000, 20_000_000]) {
    const { storeMs, publishMs } = await run<{ storeMs: number; publishMs: number }>('night', rows);
    print(`| storing one night of 5,000 pages into ${thousands(rows)} rows | ${storeMs.toFixed(0)} ms |`);
    print(`| publishing ${thousands(rows)} rows | ${(publishMs / 1000).toFixed(1)} s |`);
  }
}

/**
 * A site whose pages are all viewed daily, and one with a long tail: days, paths, paths viewed
 * daily.
 */
const SHAPES = {
  '5,000 pages, all viewed daily': [4_000, 5_000, 5_000],
  '200,000 pages, 4,000 viewed daily': [1_650, 200_000, 2_000],
};

async function measureQuestions(): Promise<void> {
  for (const [what, shape] of Object.entries(SHAPES)) {
    const { rows, bytes, ms } = await run<Answered>('questions', ...shape);
    print(`| ${thousands(rows)} rows of ${what}: published | ${thousands(bytes / 1e6)} MB |`);
    for (const [question, { first, again }] of Object.entries(ms))
      print(
        `| \`${question}\` of it: first query after opening, then later ones | ${first.toFixed(0)} ms, ${again.toFixed(0)} ms |`,
      );
  }
}

print(
  `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}\n`,
);
print('| what | result |\n| --- | --- |');
await compareWithBareLoops(0, 90);
await compareWithBareLoops(50, 90);
await compareWithNaiveScript();
await measureMemory();
await measureNights();
await measureQuestions();
