/**
 * `npm run bench:movers -- [SITES]`: how often the statistics of the reports are right on simulated sites. The rules were
 * not tuned on its seeds; `--tuning` uses those that they were tuned on. Results are in movers.md.
 */
import { percent } from '../src/format/numbers.js';
import { backtest, type Score } from './movers/backtest.js';
import { SCENARIOS } from './movers/scenarios.js';
import { COURSES, usualRangeHolds } from './movers/usual.js';

const HELD_OUT = 1_000_000;
const sites = Number(process.argv.find((argument) => /^\d+$/.test(argument)) ?? 40);
const firstSeed = process.argv.includes('--tuning') ? 1 : HELD_OUT;
/** Large sites are slow to simulate, so there are fewer of them. */
const PAGES_PER_SITE = 1_700;

const print = (...cells: readonly string[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
const average = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / Math.max(1, numbers.length);

print('scenario', 'pages', 'sites', 'quiet weeks that list a page', 'precision', 'recall');
print('---', '--:', '--:', '--:', '--:', '--:');
const scores: Score[] = [];
for (const scenario of SCENARIOS) {
  const of = Math.max(2, Math.min(sites, Math.round((sites * PAGES_PER_SITE) / scenario.pages)));
  const score = await backtest(scenario, { sites: of, firstSeed });
  scores.push(score);
  print(scenario.name, String(scenario.pages), String(of), ...cellsOf([score]));
}
for (const pages of [50, 450, 5_000])
  print('**mean**', String(pages), '', ...cellsOf(scores.filter(({ scenario }) => scenario.pages === pages)));

process.stdout.write('\n');
print('usual range', 'holds', 'records', 'high / low');
print('---', '--:', '--:', '--:');
for (const course of COURSES) {
  const { name, inside, records, width } = await usualRangeHolds(course, { sites: 10 * sites, firstSeed });
  print(name, percent(inside), percent(records), width.toFixed(2));
}

function cellsOf(some: readonly Score[]): string[] {
  return [
    percent(average(some.map(({ any }) => any))),
    percent(average(some.map(({ precision }) => precision))),
    percent(average(some.map(({ recall }) => recall))),
  ];
}
