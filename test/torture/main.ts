/** `npm run torture`: see docs/reliability.md. */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { PROPERTIES, type Property, type TrialResult } from './properties.js';
import { torture } from './torture.js';

const HELP = `npm run torture -- [--seed N] [--trials N] [--minutes N] [--lanes N]

Runs the built command against a platform and a mail server that fail at random, kills it at random points, and
compares what it stored with what the platform and the mail server received. The seed determines the whole trial.

  --seed     seed of the first trial (default: from the clock)
  --trials   number of trials (default: 50, or as many as fit into --minutes)
  --minutes  start no trial after this time
  --lanes    number of concurrent trials (default: one per core)
`;

const print = (line: string) => process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    ...{ seed: { type: 'string' }, trials: { type: 'string' }, minutes: { type: 'string' } },
    ...{ lanes: { type: 'string' }, help: { type: 'boolean' } },
  },
});
if (values.help === true) {
  process.stdout.write(HELP);
  process.exit(0);
}

function whole(name: 'seed' | 'trials' | 'minutes' | 'lanes', otherwise: number): number {
  const text = values[name];
  if (text === undefined) return otherwise;
  if (!/^\d{1,9}$/.test(text)) {
    process.stderr.write(`--${name} takes a whole number, not ${text}\n\n${HELP}`);
    process.exit(2);
  }
  return Number(text);
}

const startedMs = performance.now();
const seed = whole('seed', Math.floor(Date.now() / 1000) % 1_000_000_000);
const minutes = whole('minutes', Infinity);
let done = 0;
const interruption = new AbortController();
process.once('SIGINT', () => {
  print('Stopping after the running trials.');
  interruption.abort();
});

const results = await torture({
  ...{ seed, minutes, signal: interruption.signal },
  trials: whole('trials', values.minutes === undefined ? 50 : Infinity),
  lanes: whole('lanes', cpus().length),
  onTrial: ({ violations, evidence }) => {
    done += 1;
    for (const { property, seed, detail } of violations) print(`seed ${seed}: ${property}: ${detail}`);
    if (evidence !== undefined) print(`  see ${evidence}`);
    if (done % 50 === 0) print(`${done} trials, ${Math.round((performance.now() - startedMs) / 1000)} s`);
  },
});

for (const [name, words] of Object.entries(PROPERTIES)) print(lineOf(name as Property, words, results));
const sum = (valueOf: (result: TrialResult) => number) =>
  results.reduce((total, result) => total + valueOf(result), 0);
print(
  `${results.length} trials from seed ${seed} on: ${sum(({ commands }) => commands)} commands, ${sum(({ killed }) => killed)} killed, ` +
    `${sum(({ starved }) => starved)} on a small disk, ${((performance.now() - startedMs) / 60_000).toFixed(1)} minutes`,
);
if (!sum(({ starved }) => starved))
  print('No disk was full, because filling one needs root and permission to mount.');
process.exitCode = results.some(({ violations }) => violations.length > 0) ? 1 : 0;

function lineOf(property: Property, words: string, of: readonly TrialResult[]): string {
  const violated = of.filter(({ violations }) =>
    violations.some((violation) => violation.property === property),
  );
  const repeat =
    violated[0] === undefined ? '' : `; npm run torture -- --seed ${violated[0].seed} --trials 1`;
  return `${property.padEnd(10)} ${of.length} trials, ${violated.length} violated${repeat}  (${words})`;
}
