import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { HERE } from '../../steps/step-context.js';
import { publishLake } from '../../../src/warehouse/lake/lake.js';
import { closeNow, liveWarehouse } from '../../open-warehouse.js';
import { tempDir } from '../../temp-dir.js';
import { commitsOf, filesIn, lakeOptions, lakeViews, namedFiles, page, store, storedViews } from './lake.js';

/** Run by hand, every moment is tried; in CI a few, so that the test takes no longer than others. */
const [STRIDE, CLAIM_STRIDE] = process.env['CI'] === undefined ? [1, 1] : [11, 11];

const DIST = fileURLToPath(new URL('../../../dist/', import.meta.url));

/** Prepares and does some work, and crashes right before the n-th time that it creates, renames, writes or removes a file. */
const program = (prepare: string, work: string) => `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const [dist, database, location, dieAt] = process.argv.slice(1);
  const { openWarehouse } = await import(dist + 'warehouse/open.js');
  const warehouse = await openWarehouse(database, { command: 'test', now: () => new Date(), maxWaitMs: 30_000 });
  const place = { location, keepReplacedMs: 86_400_000, credentials: {} };
  const now = () => new Date();
  const signal = new AbortController().signal;
  ${prepare}
  let touched = 0;
  for (const name of ['chmod', 'link', 'mkdir', 'open', 'readFile', 'rename', 'rm', 'writeFile']) {
    const real = fs[name];
    fs[name] = (...values) => {
      if (++touched === Number(dieAt)) process.kill(process.pid, 'SIGKILL');
      return real(...values);
    };
  }
  syncBuiltinESMExports();
  ${work}
  process.exit(0);`;

const PUBLISH = program(
  "const { publishLake } = await import(dist + 'warehouse/lake/lake.js');",
  "await publishLake(warehouse, { place, source: 'https://platform.example.com', now: now(), signal });",
);

/** What a command does right before its first departure. */
const CLAIM = program(
  `const { EffectsJournal } = await import(dist + 'effects/journal.js');
  const { permissionOf } = await import(dist + 'app/permission.js');
  const { agreeOnClaim } = await import(dist + 'warehouse/identity.js');
  const journal = await EffectsJournal.open(database.slice(0, database.lastIndexOf('/')));
  await agreeOnClaim(journal, warehouse, now());
  const settings = { baseUrl: 'https://platform.example.com' };
  const permission = permissionOf({ warehouse, journal, here: ${JSON.stringify(HERE)}, lake: place, settings, now, signal });`,
  'if ((await permission.refusal()) ?? (await permission.claim())) process.exit(3);',
);

async function crash(work: string, database: string, directory: string, dieAt: number) {
  if (!existsSync(DIST)) throw new Error(`${DIST} is not built: npm run build`);
  const values = ['--input-type=module', '--eval', work, DIST, database, directory, String(dieAt)];
  const child = spawn(process.execPath, values, { stdio: 'inherit' });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (signal === 'SIGKILL') return 'killed';
  if (code === 3) return 'refused';
  expect(code).toBe(0);
  return 'done';
}

it('a lake whose publisher is killed at any moment is one committed state, and the next publish cleans up', async () => {
  const home = await tempDir();
  const database = join(home, 'warehouse.duckdb');
  const warehouse = await liveWarehouse(database);
  await store(warehouse, 'prj_a', {
    '2026-09-01': [page('/a', 1)],
    '2026-10-01': [page('/a', 1), page('/b', 1)],
    '2026-11-01': [page('/a', 1)],
  });
  await closeNow(warehouse);
  const before = join(home, 'before');
  await crash(PUBLISH, database, before, 0);
  const changed = await liveWarehouse(database);
  await store(changed, 'prj_a', {
    '2026-10-01': [page('/a', 2)],
    '2026-12-01': [page('/a', 2)],
  });
  const newViews = await storedViews(changed);
  await closeNow(changed);
  const oldViews = await lakeViews(before);

  const states: string[] = [];
  let kills = 0;
  for (let dieAt = 1; ; dieAt += STRIDE) {
    const lake = join(home, `lake-${dieAt}`);
    await cp(before, lake, { recursive: true, preserveTimestamps: true });
    if ((await crash(PUBLISH, database, lake, dieAt)) === 'done') break;
    kills++;
    const seen = await lakeViews(lake);
    expect([oldViews, newViews], `killed before touch ${dieAt}`).toContainEqual(seen);
    states.push(seen.length === newViews.length && seen.at(-1)?.[1] === '2026-12-01' ? 'new' : 'old');

    const next = await liveWarehouse(database);
    await publishLake(next, lakeOptions(lake));
    expect(await lakeViews(lake)).toEqual(newViews);
    // A day later, no unfinished or replaced files are left.
    await publishLake(next, lakeOptions(lake, { now: new Date(Date.now() + 25 * 3_600_000) }));
    await closeNow(next);
    expect(await filesIn(lake)).toEqual(await namedFiles(lake));
    expect(await commitsOf(lake, 'views')).toBe(3);
  }
  expect(kills * STRIDE).toBeGreaterThanOrEqual(60);
  // Once committed it stays committed, and crashes both before and after the commit were tried.
  expect(states.join(' ')).toMatch(/^(old )+(new ?)+$/);
}, 300_000);

it('a state that is killed while it claims to send may go on, and an older one only if nothing was sent', async () => {
  const home = await tempDir();
  const [lake, newest] = [join(home, 'lake'), join(home, 'newest')];
  const inState = (name: string) => join(home, name, 'warehouse.duckdb');
  await mkdir(newest);
  await closeNow(await liveWarehouse(inState('newest')));
  expect(await crash(PUBLISH, inState('newest'), lake, 0)).toBe('done');
  const outcomes: string[] = [];
  for (let dieAt = 1; outcomes.at(-1) !== 'done'; dieAt += CLAIM_STRIDE) {
    await rm(join(home, 'older'), { recursive: true, force: true });
    await cp(newest, join(home, 'older'), { recursive: true });
    outcomes.push(await crash(CLAIM, inState('newest'), lake, dieAt));
    // Whatever the kill left, the journal alone is enough: the database may be lost as well.
    if (outcomes.length % 2 === 0)
      for (const end of ['', '.wal'])
        await cp(inState('older') + end, inState('newest') + end, { force: true }).catch(() => undefined);
    if (outcomes.at(-1) === 'done') expect(await crash(CLAIM, inState('older'), lake, 0)).toBe('refused');
    expect(await crash(CLAIM, inState('newest'), lake, 0), `killed before touch ${dieAt}`).toBe('done');
  }
  expect(outcomes.length * CLAIM_STRIDE).toBeGreaterThan(12);
}, 300_000);
