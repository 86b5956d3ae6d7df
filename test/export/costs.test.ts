import { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api';
import pLimit from 'p-limit';
import { expect, test, vi } from 'vitest';
import { lastEndedDay } from '../../src/day.js';
import { exportHistory, PROJECT } from './open-export.js';
import { limitedSite, type LimitedSiteOptions } from './limited-site.js';
import { expectWhole, storedDays } from './stored-days.js';

/** Exports a history, and counts its SQL. */
async function load(size: Pick<LimitedSiteOptions, 'days' | 'pages'>) {
  const { clock, firstDay, inProcess } = await limitedSite({ ...size, requestMs: 0 });
  const range = { first: firstDay, last: lastEndedDay(clock.now()) };
  return inProcess(async ({ history, state, clientOf }) => {
    const run = vi.spyOn(DuckDBConnection.prototype, 'run');
    const prepared = vi.spyOn(DuckDBPreparedStatement.prototype, 'run');
    const client = clientOf({ id: PROJECT });
    const task = {
      history,
      state,
      client,
      project: PROJECT,
      settleDays: 3,
      inTurn: pLimit(16),
      now: clock.now,
    };
    const { results } = await exportHistory({ ...task, range });
    const calls = run.mock.calls.length + prepared.mock.calls.length;
    const commits = run.mock.calls.filter(([sql]) => sql === 'COMMIT').length;
    expect(results.map(({ outcome }) => outcome)).toEqual(Array(size.days).fill('added'));
    expect(await storedDays(history)).toHaveLength(size.days);
    await expectWhole(history);
    return { calls, commits };
  });
}

test('180 days take at most 60 SQL calls and one version of the history', async () => {
  const { calls, commits } = await load({ days: 180, pages: 300 });
  expect(commits).toBe(1);
  expect(calls).toBeLessThanOrEqual(60);
});
