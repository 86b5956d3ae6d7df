/**
 * `npm run bench:effect -- [SITES]`: how often an effect is reported, by true effect. The first
 * column has no effect, so at most 1 in 20 may be reported there.
 */
import { CALM, effectOfChange, LIVELY, type Restlessness } from './scenarios/changed-page.js';

const SITES = Number(process.argv[2] ?? 5_000);
const TRUE_RATIOS = [1, 1.1, 1.2, 1.3, 1.5, 2];

const print = (line: string) => process.stdout.write(`${line}\n`);
const percent = (share: number) => `${(share * 100).toFixed(1)}%`.padStart(8);

function shareReported(site: Restlessness, trueRatio: number): number {
  const seeds = Array.from({ length: SITES }, (_, seed) => seed);
  const verdicts = seeds.map((seed) => effectOfChange(seed, site, trueRatio).verdict);
  return verdicts.filter((verdict) => verdict === 'more read' || verdict === 'less read').length / SITES;
}

print(`How often a clear change is reported (${SITES} sites each)`);
print(
  `true change    ${TRUE_RATIOS.map((ratio) => `+${Math.round((ratio - 1) * 100)}%`.padStart(8)).join('')}`,
);
for (const [name, site] of Object.entries({ calm: CALM, lively: LIVELY }))
  print(`${name.padEnd(15)}${TRUE_RATIOS.map((ratio) => percent(shareReported(site, ratio))).join('')}`);
