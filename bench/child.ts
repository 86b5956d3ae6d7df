/**
 * Runs one scenario in a separate process, to measure its time and memory alone. Sends the result
 * as a message.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addDays, day, type Day } from '../src/day.js';
import { openWarehouse } from '../src/warehouse/open.js';
import { bareLoop, PAGE_READERS } from './scenarios/bare-loop.js';
import { nightInto } from './scenarios/big-history.js';
import { exportAll } from './scenarios/export.js';
import { naiveScript } from './scenarios/naive-script.js';
import { askHistory } from './scenarios/questions.js';

const [scenario = '', ...values] = process.argv.slice(2);
const FIRST = day('2016-01-01');
const CONCURRENCY = 6;

/**
 * Prepares a scenario. The function it returns is timed, and returns the number of rows processed.
 */
async function prepare(baseUrl: string, file: string, last: Day): Promise<() => Promise<number>> {
  switch (scenario) {
    case 'fetch':
    case 'undici':
      return () => bareLoop(PAGE_READERS[scenario], baseUrl, FIRST, last, CONCURRENCY);
    case 'naive':
      return () => naiveScript(baseUrl, file, FIRST, last);
    default: {
      const warehouse = await openWarehouse(file, { command: 'bench', now: () => new Date(), maxWaitMs: 0 });
      return () => exportAll(baseUrl, warehouse, FIRST, last, CONCURRENCY);
    }
  }
}

async function measure(): Promise<object> {
  if (scenario === 'night') return nightInto(Number(values[0]));
  if (scenario === 'questions') {
    const [days = 0, paths = 0, daily = 0] = values.map(Number);
    return askHistory({ days, paths, daily });
  }
  const [baseUrl = '', days = '1'] = values;
  const directory = await mkdtemp(join(tmpdir(), 'readership-bench-'));
  const work = await prepare(baseUrl, join(directory, 'warehouse.duckdb'), addDays(FIRST, Number(days) - 1));
  const startedMs = performance.now();
  const rows = await work();
  const elapsedMs = performance.now() - startedMs;
  await rm(directory, { recursive: true });
  return { rows, elapsedMs, peakMb: process.resourceUsage().maxRSS / 1024 };
}

process.send?.(await measure());
process.disconnect();
