/**
 * `npm run bench:movers -- [SITES]`: how many of ten planted movers each ranking finds. Results in
 * movers.md.
 */
import { percent } from '../src/format/numbers.js';
import { backtestMovers } from './movers/backtest.js';

const sites = Number(process.argv[2] ?? 20);

const print = (line: string) => process.stdout.write(`${line}\n`);

print(`${`${sites} sites`.padEnd(16)} precision at ten   recall`);
for (const { way, precision, recall } of await backtestMovers(sites))
  print(`${way.padEnd(16)} ${percent(precision).padStart(16)} ${percent(recall).padStart(8)}`);
