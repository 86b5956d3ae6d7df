import { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api';
import pLimit from 'p-limit';
import { expect, test, vi } from 'vitest';
import { lastEndedDay } from '../../src/day.js';
import type { DayResult } from '../../src/export/load.js';
import { exportHistory } from './export-history.js';
import { limitedSite, type LimitedSiteOptions } from './limited-site.js';
import { PROJECT } from './open-export.js';
import { expectWhole, storedDays } from './stored-days.js';

/** Exports a history, and counts its SQL and the requests whose days are not stored. */
async function load(size: Pick<LimitedSiteOptions, 'days' | 'pages'>) {
  const { clock, platform, firstDay, inProcess } = await limitedSite({ ...size, requestMs: 0 });
  const range = { first: firstDay, last: lastEndedDay(clock.now()) };
  let stored = 0;
  let mostLost = 0;
  const onDay = ({ day }: DayResult) => {
    const read = platform.views.filter(({ limit }) => limit > 1);
    mostLost = Math.max(mostLost, read.length - stored);
    stored += read.filter(({ from }) => from === day).length;
  };
  return inProcess(async ({ warehouse, state, clientOf }) => {
    const run = vi.spyOn(DuckDBConnection.prototype, 'run');
    const prepared = vi.spyOn(DuckDBPreparedStatement.prototype, 'run');
    const client = clientOf({ id: PROJECT });
    const task = {
      warehouse,
      state,
      client,
      project: PROJECT,
      settleDays: 3,
      inTurn: pLimit(16),
      now: clock.now,
    };
    const { results } = await exportHistory({ ...task, range, onDay });
    const calls = run.mock.calls.length + prepared.mock.calls.length;
    const commits = run.mock.calls.filter(([sql]) => sql === 'COMMIT').length;
    expect(results.map(({ outcome }) => outcome)).toEqual(Array(size.days).fill('added'));
    expect(await storedDays(warehouse)).toHaveLength(size.days);
    await expectWhole(warehouse);
    return { calls, commits, mostLost };
  });
}

test('180 days take at most 150 SQL calls and 80 commits', async () => {
  const { calls, commits } = await load({ days: 180, pages: 300 });
  expect(commits).toBeGreaterThan(5);
  expect(commits).toBeLessThanOrEqual(80);
  expect(calls).toBeLessThanOrEqual(150);
});

test('a kill at any moment loses few requests, because days that are read are soon stored', async () => {
  const { mostLost } = await load({ days: 180, pages: 300 });
  expect(mostLost).toBeGreaterThan(2);
  expect(mostLost).toBeLessThanOrEqual(450);
});
