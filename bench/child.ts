/** Runs one scenario in a process of its own, so that its time and memory are its own; the answer is sent as a message. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, day } from '../src/day.js';
import { bareLoop } from './scenarios/bare-loop.js';
import { nightInto } from './scenarios/big-history.js';
import { exportAll } from './scenarios/export.js';
import { naiveScript } from './scenarios/naive-script.js';
import { askHistory } from './scenarios/questions.js';

const [scenario = '', ...values] = process.argv.slice(2);
const FIRST = day('2016-01-01');
const CONCURRENCY = 6;

async function measure(): Promise<object> {
  if (scenario === 'night') return nightInto(Number(values[0]));
  if (scenario === 'questions') {
    const [days = 0, paths = 0, daily = 0] = values.map(Number);
    return askHistory({ days, paths, daily });
  }
  const [baseUrl = '', days = '1'] = values;
  const last = addDays(FIRST, Number(days) - 1);
  const directory = await mkdtemp(join(tmpdir(), 'readership-bench-'));
  const file = join(directory, 'warehouse.duckdb');
  const startedMs = performance.now();
  const rows =
    scenario === 'bare'
      ? await bareLoop(baseUrl, FIRST, last, CONCURRENCY)
      : scenario === 'naive'
        ? await naiveScript(baseUrl, file, FIRST, last)
        : await exportAll(baseUrl, file, FIRST, last, CONCURRENCY);
  const elapsedMs = performance.now() - startedMs;
  await rm(directory, { recursive: true });
  return { rows, elapsedMs, peakMb: process.resourceUsage().maxRSS / 1024 };
}

process.send?.(await measure());
process.disconnect();
