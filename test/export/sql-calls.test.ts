import { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { openBudgets } from '../../src/app/budgets.js';
import { settingsSchema } from '../../src/config/schema.js';
import { addDays, lastEndedDay } from '../../src/day.js';
import { openClient } from '../api/open-client.js';
import { sleepingClock } from '../budget/open-budget.js';
import { liveWarehouse } from '../open-warehouse.js';
import { rowsOf, servePlatform } from '../platform.js';
import { exportHistory } from './export-history.js';
import { PROJECT } from './open-export.js';
import { expectWhole, storedDays } from './stored-days.js';

afterEach(() => {
  vi.restoreAllMocks();
});

test('180 days under an hourly limit take at most 150 SQL calls and 80 commits', async () => {
  const clock = sleepingClock();
  const last = lastEndedDay(clock.now());
  const range = { first: addDays(last, -179), last };
  const rows = rowsOf(last, 300);
  const platform = await servePlatform({ now: clock.now, rowsOf: () => rows });
  const settings = settingsSchema.parse({
    baseUrl: platform.baseUrl,
    projects: [{ id: PROJECT }],
    history: { requestsPerHour: 1_000_000, concurrency: 16 },
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

  const calls: string[] = [];
  const run = vi.spyOn(DuckDBConnection.prototype, 'run');
  const prepared = vi.spyOn(DuckDBPreparedStatement.prototype, 'run');
  const task = { warehouse, client, project: PROJECT, settleDays: 3, concurrency: 16, now: clock.now };
  const { results } = await exportHistory({ ...task, range });
  calls.push(...run.mock.calls.map(([sql]) => sql));
  const commits = calls.filter((sql) => sql === 'COMMIT').length;

  expect(results.every(({ outcome }) => outcome === 'added')).toBe(true);
  expect(commits).toBeGreaterThan(5);
  expect(commits).toBeLessThanOrEqual(80);
  expect(calls.length + prepared.mock.calls.length).toBeLessThanOrEqual(150);
  expect(await storedDays(warehouse)).toHaveLength(180);
  await expectWhole(warehouse);
});
