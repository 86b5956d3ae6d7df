/**
 * `npm run mutation [-- ROOM…]` changes each decision, runs the tests of its room, and lists the changes that no test
 * notices. It needs Node.js 22, and hours for everything.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** The files that decide. Most mutants elsewhere are changes of wording or of layout. */
const DECISIONS = {
  agents: ['select', 'plan', 'lifecycle', 'reconcile', 'effect', 'pairs'],
  budget: ['budget', 'hour'],
  config: ['shard'],
  effects: ['entries', 'journal', 'lines'],
  export: ['plan', 'walk', 'totals', 'forecast'],
  mail: ['ledger'],
  reports: ['weekly/comparison', 'weekly/sentences'],
  service: ['due'],
  steps: ['corrections'],
  warehouse: ['behind'],
  web: ['access'],
};

const STRYKER = join(import.meta.dirname, 'node_modules/.bin/stryker');

const named = process.argv.slice(2);
for (const [room, files] of Object.entries(DECISIONS)) {
  if (named.length > 0 && !named.includes(room)) continue;
  const env = { ...process.env, ROOM: room, MUTATED: files.map((file) => `src/${room}/${file}.ts`).join() };
  const { status } = spawnSync(STRYKER, ['run', 'bench/mutation/stryker.config.js'], {
    env,
    stdio: 'inherit',
  });
  if (status !== 0) process.exitCode = 1;
}
