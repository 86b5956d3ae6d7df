import { test } from 'vitest';
import { percent } from '../src/format/numbers.js';
import { backtestMovers } from './movers/backtest.js';

const SITES = 20;

test('what moved, found in simulated sites', { timeout: 300_000 }, async () => {
  const lines = (await backtestMovers(SITES)).map(
    ({ way, precision, recall }) =>
      `${way.padEnd(16)} ${percent(precision).padStart(16)} ${percent(recall).padStart(8)}`,
  );
  const head = `${`${SITES} sites`.padEnd(16)} precision at ten   recall`;
  process.stdout.write(`${[head, ...lines].join('\n')}\n`);
});
