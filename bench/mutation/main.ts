/**
 * `npm run mutation [-- FILE…]` changes each decision, runs the tests closest to it, and lists the changes that none of
 * them notices. It needs Node.js 22, and an hour for everything.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** The files that decide, with their tests. Most mutants elsewhere are changes of wording or of layout. */
const DECISIONS = {
  'agents/select': 'agents/{plan,select}',
  'agents/plan': '{agents/{plan,ranking,select},steps/{decide-pages,submit}}',
  'agents/lifecycle': 'agents/{lifecycle,failures,poll}',
  'api/pace': 'api/{learning,pace}',
  'api/hour': 'api/hour',
  'config/cron': 'config/cron',
  'export/plan': 'export/plan',
  'export/walk': 'export/walk',
  'export/probe': 'export/{first-day,verify}',
  'export/totals': 'export/{verify,walk}',
  'history/write': 'history/{write,what-is-stored}',
  'mail/delivery': 'mail/due',
  'reports/weekly/comparison': 'reports/{comparison,verdict}',
  'reports/weekly/sentences': 'reports/{comparison,verdict}',
  'service/due': 'service/due',
  'state/lock': 'state/lock',
  'state/sender': 'state/sender',
  'state/witness': 'state/witness',
  'web/access': 'web/access',
} as const;

const STRYKER = join(import.meta.dirname, 'node_modules/.bin/stryker');

const named = process.argv.slice(2);
for (const [file, tests] of Object.entries(DECISIONS)) {
  if (named.length > 0 && !named.includes(file)) continue;
  const env = { ...process.env, MUTATED: `src/${file}.ts`, TESTS: `test/${tests}.test.ts` };
  const { status } = spawnSync(STRYKER, ['run', 'bench/mutation/stryker.config.js'], {
    env,
    stdio: 'inherit',
  });
  if (status !== 0) process.exitCode = 1;
}
