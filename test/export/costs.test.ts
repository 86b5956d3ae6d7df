import { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api';
import pLimit from 'p-limit';
import { expect, test, vi } from 'vitest';
import { openBudgets } from '../../src/app/connection.js';
import { settingsSchema } from '../../src/config/schema.js';
import { addDays, type Day, lastEndedDay } from '../../src/day.js';
import type { DayResult } from '../../src/export/load.js';
import { openClient } from '../api/open-client.js';
import { sleepingClock } from '../budget/open-budget.js';
import { liveWarehouse } from '../open-warehouse.js';
import { rowsOf, servePlatform } from '../platform.js';
import { exportHistory } from './export-history.js';
import { PROJECT } from './open-export.js';
import { expectWhole, storedDays } from './stored-days.js';

/** Exports `days` days of `pages` pages from a platform that counts the requests whose days are not stored. */
async function openExport({ days, pages, limit }: { days: number; pages: number; limit: number }) {
  const clock = sleepingClock();
  const last = lastEndedDay(clock.now());
  const range = { first: addDays(last, 1 - days), last };
  const rows = rowsOf(last, pages);
  const notStored = new Map<Day, number>();
  const lost = { most: 0 };
  const platform = await servePlatform({
    now: clock.now,
    rowsOf: (at) => {
      notStored.set(at, (notStored.get(at) ?? 0) + 1);
      const sum = [...notStored.values()].reduce((total, requests) => total + requests, 0);
      lost.most = Math.max(lost.most, sum);
      return rows;
    },
  });
  const settings = settingsSchema.parse({
    baseUrl: platform.baseUrl,
    projects: [{ id: PROJECT }],
    history: { requestsPerHour: limit, concurrency: 16 },
  });
  const warehouse = await liveWarehouse();
  const [project] = settings.projects;
  const workspace = { settings, configuration: undefined };
  const pace = project && openBudgets(warehouse, workspace, clock.now, () => undefined)(project);
  if (pace === undefined) throw new Error('no budget');
  const client = openClient(platform.baseUrl, {
    now: clock.now,
    pace,
    limits: { responseTimeoutMs: 20_000 },
  });
  const task = { warehouse, client, project: PROJECT, settleDays: 3, inTurn: pLimit(16), now: clock.now };
  const onDay = ({ day }: DayResult) => notStored.delete(day);
  return { warehouse, lost, run: () => exportHistory({ ...task, range, onDay }) };
}

test('180 days under an hourly limit take at most 150 SQL calls and 80 commits', async () => {
  const { warehouse, run: load } = await openExport({ days: 180, pages: 300, limit: 1_000_000 });
  const calls: string[] = [];
  const run = vi.spyOn(DuckDBConnection.prototype, 'run');
  const prepared = vi.spyOn(DuckDBPreparedStatement.prototype, 'run');
  const { results } = await load();
  calls.push(...run.mock.calls.map(([sql]) => sql));
  const commits = calls.filter((sql) => sql === 'COMMIT').length;

  expect(results.every(({ outcome }) => outcome === 'added')).toBe(true);
  expect(commits).toBeGreaterThan(5);
  expect(commits).toBeLessThanOrEqual(80);
  expect(calls.length + prepared.mock.calls.length).toBeLessThanOrEqual(150);
  expect(await storedDays(warehouse)).toHaveLength(180);
  await expectWhole(warehouse);
});

test.each([
  ['a tenth of 1,000', 100, { days: 180, pages: 300, limit: 1_000 }],
  ['a tenth of 100', 10, { days: 30, pages: 700, limit: 100 }],
  ['one day', 3, { days: 6, pages: 700, limit: 20 }],
])('a kill at any moment loses at most the requests of %s', async (_, bound, history) => {
  const { lost, run } = await openExport(history);
  expect((await run()).results).toHaveLength(history.days);
  expect(lost.most).toBeGreaterThan(2);
  expect(lost.most).toBeLessThanOrEqual(bound);
});
