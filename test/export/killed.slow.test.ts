import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { daysIn } from '../../src/day.js';
import { readUnfinishedDays } from '../../src/state/days.js';
import {
  daysAgo,
  endedWith,
  env,
  historyFile,
  keep,
  platformWorkspace,
  putBack,
} from '../commands/workspace.js';
import { inHistory, valuesOf } from '../open-history.js';
import { openTestState } from '../open-state.js';
import { rowsOf, servePlatform } from '../platform.js';
import { callCli, runCli, startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { buildShim, killedAt } from '../torture/shim.js';
import { expectWhole } from './stored-days.js';

const KILLS = process.env['CI'] === undefined ? 30 : 4;
/** Settled ones, of several pages each. */
const DAYS = daysIn({ first: daysAgo(8), last: daysAgo(6) });
const ROWS = 1_500;
const EXPORT = ['export', '--from', daysAgo(8), '--to', daysAgo(6)];
/** The export is stopped while it reads them. */
const STOPPED_AT = 8;
const SETTINGS = `history: { start: ${daysAgo(8)} }\n`;
const TOTAL = 'SELECT sum(total)::BIGINT AS total FROM page_views';
const FILES = ['history.duckdb', 'state.db'];

it('the kept pages of a day are read once and counted once, whenever an export is killed (skipped without a C compiler)', async (context) => {
  const shim = await buildShim();
  if (shim === undefined) return context.skip('there is no C compiler');
  let onRequest = (): void => undefined;
  const platform = await servePlatform({
    now: () => new Date(),
    rowsOf: (day) => {
      onRequest();
      return DAYS.includes(day) ? rowsOf(day, ROWS) : [];
    },
  });
  const cwd = await platformWorkspace(platform, SETTINGS);
  const data = join(cwd, 'data');
  const unfinished = async () => {
    const { state, close } = await openTestState(data);
    const days = readUnfinishedDays(state, 'prj_1');
    await close();
    return days;
  };
  const stopped = startCli(EXPORT, { cwd, env });
  onRequest = () => {
    if (platform.views.length >= STOPPED_AT) stopped.child.kill('SIGTERM');
  };
  endedWith(143, await stopped.result);
  onRequest = () => undefined;
  const kept = await unfinished();
  expect(kept.size).toBeGreaterThan(0);
  const saved = await keep(cwd);

  /** Exports from the kept pages again, with other environment variables. */
  const exportAgain = async (more: Readonly<Record<string, string>>) => {
    await putBack(cwd, saved);
    platform.views.length = 0;
    return runCli(EXPORT, { cwd, env: { ...env, ...more } });
  };
  const expectKeptUsed = () => {
    const read = platform.views.filter(({ limit }) => limit > 1);
    for (const { from, offset } of read) expect(offset, from).toBeGreaterThanOrEqual(kept.get(from) ?? 0);
  };
  const count = join(await tempDir(), 'count');
  const never = { change: 0, isTorn: false, permille: 0 };
  endedWith(0, await exportAgain({ ...killedAt(shim, never, data, FILES), TEAR_COUNT: count }));
  const changes = Number(await readFile(count, 'utf8'));
  const total = DAYS.flatMap((day) => rowsOf(day, ROWS)).reduce((sum, row) => sum + row.total, 0);
  for (let kill = 0; kill < KILLS; kill++) {
    const change = 1 + Math.floor((kill * changes) / KILLS);
    const killed = await exportAgain(killedAt(shim, { ...never, change }, data, FILES));
    expect(killed.signal, `change ${change} of ${changes}: ${killed.stderr}`).toBe('SIGKILL');
    expectKeptUsed();
    platform.views.length = 0;
    endedWith(0, await callCli(EXPORT, { cwd, env }));
    expectKeptUsed();
    expect((await unfinished()).size).toBe(0);
    await inHistory(historyFile(cwd), async (history) => {
      await expectWhole(history);
      expect(await valuesOf(history, TOTAL)).toEqual([total]);
    });
  }
});
