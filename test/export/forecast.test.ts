import { addHours } from 'date-fns';
import { describe, expect, test } from 'vitest';
import { sharedLimits } from '../../src/app/credentials.js';
import { settingsSchema } from '../../src/config/schema.js';
import { addDays, day, lastEndedDay } from '../../src/day.js';
import {
  forecastExport,
  type ForecastRequest,
  hasHoles,
  readNightlyNeed,
} from '../../src/export/forecast.js';
import { execute, liveWarehouse } from '../open-warehouse.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const YESTERDAY = lastEndedDay(NOW);

/** A database with stored days, and what an export of all its projects, or of some, needs. */
async function setUp(history: object, projects: object[] = [{ id: 'a' }]) {
  const warehouse = await liveWarehouse();
  const settings = settingsSchema.parse({ baseUrl: 'https://platform.example.com', projects, history });
  const limits = sharedLimits(settings, {});
  const change = (sql: string) => execute(warehouse, sql);
  const stored = { project: 'a', state: 'final', pages: 501, at: '2026-11-17 02:15:00' };
  const store = (first: string, last = first, how: Partial<typeof stored> = {}) => {
    const { project, state, pages, at } = { ...stored, ...how };
    return change(`
      INSERT INTO day_loads BY NAME
      SELECT '${project}' AS project, day::DATE AS day, '${state}' AS state, ${pages} AS pages,
        TIMESTAMP '${at}' AS attempted_at, attempted_at AS loaded_at, 1 AS total
      FROM generate_series(DATE '${first}', DATE '${last}', INTERVAL 1 DAY) AS days (day)`);
  };
  const forecasts = (request: Partial<ForecastRequest> = {}) =>
    forecastExport(warehouse, limits, settings, { projects: settings.projects, ...request }, NOW);
  const forecast = async (request?: Partial<ForecastRequest>) =>
    (await forecasts(request))[0] ?? expect.fail();
  const isMissing = () => hasHoles(warehouse, settings.projects, settings.history, NOW);
  const need = () => readNightlyNeed(warehouse, settings.projects, settings.history.settleDays, NOW);
  const bucket = limits[0]?.bucket ?? '';
  return { projects: settings.projects, bucket, change, store, forecasts, forecast, isMissing, need };
}

describe('the requests of an export', () => {
  test('are those of its days, without what is kept of them, and of the check until it was made', async () => {
    const { change, store, forecast } = await setUp({ start: '2026-11-10' });
    await store('2026-11-10', '2026-11-16');
    expect(await forecast()).toMatchObject({ requests: 3 + 1, plan: { requests: 3 } });
    expect(await forecast({ reload: true })).toMatchObject({ requests: 8 * 3 });
    const views = JSON.stringify(Array.from({ length: 250 }, () => ({})));
    await change(`INSERT INTO unfinished_pages VALUES ('a', '${YESTERDAY}', 0, '{"views":${views}}')`);
    expect(await forecast()).toMatchObject({ requests: 2 + 1, plan: { requests: 3 } });
    await change(
      `INSERT INTO platform_facts VALUES ('a', 'paging', '{"rows":125,"isShuffled":false}', '2026-11-17')`,
    );
    expect(await forecast()).toMatchObject({ requests: 3 + 1, plan: { requests: 5 } });
    const check = (at: string) =>
      change(`INSERT INTO verifications VALUES ('a', '${at}', '2026-11-10', '2026-11-16', 0)`);
    await check('2026-11-17 23:59:59');
    expect(await forecast()).toMatchObject({ requests: 3 + 1 });
    await check('2026-11-18 00:00:00');
    expect(await forecast()).toMatchObject({ requests: 3 });
  });

  test('include one for each run of days that is checked, and days that may change unless a gap is being filled', async () => {
    const { store, forecast, isMissing } = await setUp({ start: '2026-11-10' }, [{ id: 'a' }, { id: 'b' }]);
    await store('2026-11-10', '2026-11-12');
    await store('2026-11-13', '2026-11-13', { state: 'failed', at: '2026-11-18 04:59:00' });
    await store('2026-11-14', '2026-11-16');
    await store(YESTERDAY, YESTERDAY, { state: 'provisional', at: '2026-11-18 02:15:00', pages: 700 });
    // The gap is in another project, which shares the limit.
    expect(await isMissing()).toBe(true);
    expect(await forecast()).toMatchObject({ requests: 3 + 2, plan: { requests: 3 } });
    await store('2026-11-10', '2026-11-15', { project: 'b' });
    expect(await isMissing()).toBe(true);
    // Yesterday, which every night reads, is no gap.
    await store('2026-11-16', '2026-11-16', { project: 'b' });
    expect(await isMissing()).toBe(false);
    expect(await forecast()).toMatchObject({ requests: 3 + 1 + 2, plan: { requests: 3 + 1 } });
  });

  test('of a night are those of the settling days of each project and its check', async () => {
    const { store, need } = await setUp({ settleDays: 2 }, [{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    expect(await need()).toEqual({ requests: 3 * (3 + 1), longestDay: 1 });
    await store('2026-11-15', '2026-11-15', { pages: 5_000 });
    await store('2026-11-16', '2026-11-16', { pages: 1_001 });
    await store('2026-11-16', '2026-11-16', { project: 'b', pages: 251 });
    expect(await need()).toEqual({ requests: 3 * 5 + 1 + (3 * 2 + 1) + (3 + 1), longestDay: 5 });
  });
});

test.each([
  ['while the first day is not known', 'auto', true],
  ['without days before yesterday', YESTERDAY, false],
  ['with one', addDays(YESTERDAY, -1), true],
])('%s, a project with no stored days has a gap: %#', async (_, start, expected) => {
  const { isMissing } = await setUp({ start });
  expect(await isMissing()).toBe(expected);
});

describe('the finishing time of an export', () => {
  test('is about its requests, divided by the limit', async () => {
    const { forecast } = await setUp({ start: addDays(YESTERDAY, -1_199), requestsPerHour: 20 });
    // One request for each day: what is read today needs no check. The first twenty can be sent now.
    expect(await forecast()).toMatchObject({ requests: 1_200, finishingAt: addHours(NOW, 59) });
  });

  test('follows the requests of the last hour and a pause, of its own limit only', async () => {
    const { change, forecast, bucket } = await setUp({ start: YESTERDAY, requestsPerHour: 10 });
    const use = (of: string, at: string, pausedUntil = 'NULL') =>
      change(`INSERT INTO request_uses VALUES ('', '${of}', '${at}', 10, 'refused', ${pausedUntil})`);
    await use('other', '2026-11-18 04:55:00');
    expect((await forecast()).finishingAt).toEqual(NOW);
    await use(bucket, '2026-11-18 04:50:00');
    expect((await forecast()).finishingAt).toEqual(new Date('2026-11-18T05:51:00Z'));
    await use(bucket, '2026-11-18 04:50:00', `'2026-11-18 05:58:00'`);
    expect((await forecast()).finishingAt).toEqual(new Date('2026-11-18T05:58:00Z'));
  });
});

test('without the first day, no finishing time is predicted', async () => {
  const { change, forecast, forecasts } = await setUp({ start: 'auto' }, [{ id: 'a' }, { id: 'b' }]);
  expect(await forecast()).toMatchObject({ plan: undefined, finishingAt: undefined, requests: 0 });
  const bounded = await forecast({ from: day('2026-11-10') });
  expect(bounded).toMatchObject({ plan: { requests: 8 }, requests: 8, finishingAt: NOW });
  // Nor if it is known of only some of the projects that share a limit.
  await change(`INSERT INTO platform_facts VALUES ('a', 'first day', '"2026-11-10"', '2026-11-18')`);
  const some = await forecasts();
  expect(some.map(({ plan, finishingAt }) => [plan?.requests, finishingAt])).toEqual([
    [8, undefined],
    [undefined, undefined],
  ]);
});

test('only the days and projects that are asked for are planned, in the order of the request', async () => {
  const { forecasts, projects } = await setUp({ requestsPerHour: 'unlimited' }, [
    { id: 'a' },
    { id: 'b', apiKeyEnv: 'KEY_OF_B' },
  ]);
  const planned = async (request: Partial<ForecastRequest>) => {
    const found = await forecasts({ ...request, from: day('2026-11-10'), to: day('2026-11-12') });
    return found.map(({ project, requests, finishingAt }) => [project.id, requests, finishingAt]);
  };
  expect(await planned({ projects: projects.toReversed() })).toEqual([
    ['b', 3, NOW],
    ['a', 3, NOW],
  ]);
  expect(await planned({ projects: projects.slice(1) })).toEqual([['b', 3, NOW]]);
});
