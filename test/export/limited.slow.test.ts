import { addMinutes } from 'date-fns';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { describe, expect, test } from 'vitest';
import { Client } from '../../src/api/client.js';
import { Transport } from '../../src/api/transport.js';
import { PausedError } from '../../src/api/errors.js';
import type { PageViews } from '../../src/api/schema.js';
import type { Pace } from '../../src/api/retry.js';
import { openBudgets } from '../../src/app/connection.js';
import { settingsSchema } from '../../src/config/schema.js';
import { addDays, type Day, day, dayOf, daysBetween, daysIn, lastEndedDay } from '../../src/day.js';
import { exportHistory } from './export-history.js';
import { readDayLedger } from '../../src/export/ledger.js';
import { resolveRange } from '../../src/export/range.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { KEY } from '../api/open-client.js';
import { MINUTE_MS, sleepingClock } from '../budget/open-budget.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { type Platform, rowsOf, servePlatform } from '../platform.js';
import { tempDir } from '../temp-dir.js';
import { PROJECT, withOneMore } from './open-export.js';

const PAGES = 751;
const REQUESTS_A_DAY = 4;
/** Concurrent days, by default. */
const CONCURRENCY = 6;
/** Duration of a request, on the clock of the test. */
const REQUEST_MS = 200;

interface World {
  readonly clock: ReturnType<typeof sleepingClock>;
  readonly platform: Platform;
  readonly firstDay: Day;
  /** Exports what is due in a new process, and returns how it ended. */
  readonly exportOnce: (end: 'closed' | 'crashed', to?: Day) => Promise<PausedError | 'done'>;
  readonly loadedDays: () => Promise<Map<Day, Date>>;
  /** Adds one view to each of these days on the platform. */
  readonly restate: (days: readonly Day[]) => void;
}

/** A year of history on a platform that answers 100 requests an hour, including those of others. */
async function openWorld(options: {
  maxWait: string;
  days: number;
  pages?: number;
  othersUsed?: number;
  limit?: number;
}): Promise<World> {
  const clock = sleepingClock();
  const { days, pages = PAGES, maxWait, othersUsed = 0, limit = 100 } = options;
  const firstDay = addDays(lastEndedDay(clock.now()), 1 - days);
  const cached = new Map<Day, readonly PageViews[]>();
  const platform = await servePlatform({
    now: clock.now,
    limit,
    othersUsed: Array.from({ length: othersUsed }, () => addMinutes(clock.now(), -20)),
    rowsOf: (at) => {
      const rows = cached.get(at) ?? (at < firstDay || at >= dayOf(clock.now()) ? [] : rowsOf(at, pages));
      cached.set(at, rows);
      return rows;
    },
  });
  const settings = settingsSchema.parse({
    baseUrl: platform.baseUrl,
    projects: [{ id: PROJECT }],
    history: { maxWait, requestsPerHour: limit },
  });
  const path = join(await tempDir(), 'warehouse.duckdb');

  const attempt = async (warehouse: Warehouse, pace: Pace, to: Day | undefined) => {
    const transport = new Transport();
    const client = new Client({
      baseUrl: platform.baseUrl,
      projectId: PROJECT,
      apiKey: KEY,
      keyName: 'KEY',
      now: clock.now,
      pace,
      transport,
      retries: { retries: 2, minDelayMs: 1, maxDelayMs: 2_000 },
      onRequest: () => {
        clock.advance(REQUEST_MS);
      },
    });
    const common = { warehouse, client, project: PROJECT };
    try {
      const range = await resolveRange({ ...common, start: 'auto', now: clock.now(), to });
      if (range === undefined) throw new Error('the platform has views');
      const { settleDays, concurrency } = settings.history;
      const outcome = await exportHistory({
        ...common,
        range,
        settleDays,
        inTurn: pLimit(concurrency),
        now: clock.now,
      });
      return outcome.stopped ?? 'done';
    } catch (error) {
      return error;
    } finally {
      await transport.close();
    }
  };
  return {
    clock,
    platform,
    firstDay,
    restate: (restated) => {
      for (const at of restated) cached.set(at, withOneMore(rowsOf(at, pages)));
    },
    exportOnce: async (end, to) => {
      const warehouse = await liveWarehouse(path);
      const workspace = { settings, configuration: undefined };
      const paceOf = openBudgets(warehouse, workspace, clock.now, () => undefined, clock.sleep);
      const [project] = settings.projects;
      const pace = project && paceOf(project);
      if (pace === undefined) throw new Error('no budget');
      const outcome = await attempt(warehouse, pace, to);
      await closeNow(warehouse);
      if (outcome === 'done' || outcome instanceof PausedError) return outcome;
      throw outcome;
    },
    loadedDays: async () => {
      const warehouse = await liveWarehouse(path);
      const ledger = await readDayLedger(warehouse, PROJECT);
      await closeNow(warehouse);
      return new Map([...ledger.values()].map((record) => [record.day, record.attempted_at]));
    },
  };
}

/** How often each page of each day was answered. */
function answered({ platform }: World): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { from, offset, limit, status } of platform.views) {
    const key = `${from} ${offset}`;
    if (limit === 250 && status === 200) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** The number of refused requests, and of those that were sent after the first refusal had arrived. */
function refusals({ platform }: World) {
  const refused = platform.views.filter(({ status }) => status === 429).map(({ at }) => at.getTime());
  const first = refused[0] ?? Infinity;
  return {
    count: refused.length,
    later: refused.filter((at) => at > first + CONCURRENCY * REQUEST_MS).length,
  };
}

/** Days of the long backfill. */
const DAYS = process.env['CI'] === undefined ? 365 : 90;

describe(`a backfill of ${DAYS} days of 4 requests each, at 100 requests an hour`, () => {
  test.each([
    { mode: 'the service, beside another client of the key', maxWait: '0s', tickMinutes: 20, othersUsed: 40 },
    { mode: 'one command an hour', maxWait: '2m', tickMinutes: 60, othersUsed: 0 },
  ])('$mode', async ({ maxWait, tickMinutes, othersUsed }) => {
    const world = await openWorld({ maxWait, days: DAYS, othersUsed });
    const { clock, platform, firstDay } = world;
    const begun = clock.now();
    let processes = 0;
    let nights = 0;
    let outcome: PausedError | 'done' = new PausedError('not begun', begun);
    while (outcome !== 'done' || nights < 2) {
      const nightAt = new Date(`${dayOf(clock.now())}T02:15:00Z`);
      const isNight = clock.now().getTime() === nightAt.getTime();
      const tonight = lastEndedDay(clock.now());
      // Three of the processes are killed, so their reserved requests are not returned.
      outcome = await world.exportOnce([3, 7, 12].includes(processes++) ? 'crashed' : 'closed');
      if (isNight && (await world.loadedDays()).has(tonight)) nights++;
      else if (isNight) throw new Error(`${tonight} is late`);
      // Advances to the next tick while something is left, but never past that of the night.
      const today = new Date(`${dayOf(clock.now())}T02:15:00Z`);
      const night = clock.now() < today ? today : addMinutes(today, 24 * 60);
      const next = addMinutes(clock.now(), tickMinutes);
      const until = outcome === 'done' || night < next ? night : next;
      clock.advance(until.getTime() - clock.now().getTime());
      if (clock.now().getTime() - begun.getTime() > 4 * 24 * 60 * MINUTE_MS) throw new Error('too long');
    }
    const loaded = await world.loadedDays();
    expect(daysIn({ first: firstDay, last: lastEndedDay(begun) }).every((at) => loaded.has(at))).toBe(true);
    expect(platform.busiestHour()).toBeLessThanOrEqual(100);
    expect(platform.busiestHour()).toBeGreaterThan(80);
    expect(refusals(world).later).toBe(0);
    expect(refusals(world).count > 0).toBe(othersUsed > 0);

    // No page is read twice, except those of days that the one refusal stopped, and settling days when they become final.
    const isSettling = (at: string) => at >= addDays(lastEndedDay(begun), -3);
    const twice = [...answered(world)].filter(([, count]) => count > 1).map(([key]) => key.split(' '));
    const halfRead = new Set(twice.flatMap(([at = '']) => (isSettling(at) ? [] : [at])));
    expect(halfRead.size).toBeLessThanOrEqual(othersUsed > 0 ? CONCURRENCY : 0);
    const ofSettling = [...answered(world)].filter(([key]) => isSettling(key) && !key.endsWith(' 0'));
    expect(Math.max(...ofSettling.map(([, count]) => count))).toBeLessThanOrEqual(2);
    const search = 2 * Math.ceil(Math.log2(daysBetween(day('2015-01-01'), lastEndedDay(begun)))) + 2;
    const ofNights = nights * (REQUESTS_A_DAY + 3 + 1);
    const all = platform.views.filter(({ status }) => status === 200).length;
    expect(all).toBeLessThanOrEqual((DAYS + halfRead.size) * REQUESTS_A_DAY + search + ofNights);
  });
});

describe('tonight', () => {
  test('is loaded within minutes, although a backfill has just used all that it may', async () => {
    const world = await openWorld({ maxWait: '0s', days: 200 });
    const { clock } = world;
    await world.exportOnce('closed');
    clock.advance(new Date('2026-11-19T02:10:00Z').getTime() - clock.now().getTime());
    const backfill = await world.exportOnce('closed', day('2026-11-01'));
    expect(backfill).toBeInstanceOf(PausedError);
    clock.advance(5 * MINUTE_MS);
    await world.exportOnce('closed');
    const loadedAt = (await world.loadedDays()).get(day('2026-11-18'));
    expect(loadedAt?.getTime()).toBeLessThan(new Date('2026-11-19T02:17:00Z').getTime());
    expect(refusals(world).count).toBe(0);
  });

  test('is not dropped halfway if the backfill in the same export runs out of budget', async () => {
    const world = await openWorld({ maxWait: '0s', days: 100 });
    await world.exportOnce('closed');
    world.clock.advance(new Date('2026-11-19T02:05:00Z').getTime() - world.clock.now().getTime());
    await world.exportOnce('closed', day('2026-11-01'));
    expect(await world.exportOnce('closed')).toBeInstanceOf(PausedError);
    const loaded = await world.loadedDays();
    expect(loaded.has(day('2026-11-18'))).toBe(true);
  });
});

describe('days of many requests', () => {
  test('are read in parts across hours: no request is sent twice', async () => {
    // 20 requests a day, six days at a time: if all began at once, none would be finished within 100 an hour.
    const world = await openWorld({ maxWait: '0s', days: 12, pages: 5_000 });
    let hours = 0;
    while ((await world.exportOnce('closed')) !== 'done' && hours++ < 24) world.clock.advance(61 * MINUTE_MS);
    expect((await world.loadedDays()).size).toBe(12);
    expect(hours).toBeLessThanOrEqual(3);
    const counts = [...answered(world).values()];
    expect(counts).toHaveLength(12 * 20);
    expect(counts.every((count) => count === 1)).toBe(true);
  });

  test('are loaded even if a single one takes more than half of the hourly limit', async () => {
    const world = await openWorld({ maxWait: '0s', days: 3, pages: 6_000, limit: 40 });
    let hours = 0;
    while ((await world.exportOnce('closed')) !== 'done' && hours++ < 24) world.clock.advance(62 * MINUTE_MS);
    expect((await world.loadedDays()).size).toBe(3);
    expect(hours).toBeLessThanOrEqual(2);
  });

  test('that take more than the hourly limit are loaded over several hours by the service, even if it is killed', async () => {
    const world = await openWorld({ maxWait: '0s', days: 2, pages: 10_500, limit: 40 });
    expect(await world.exportOnce('closed')).toBeInstanceOf(PausedError);
    expect((await world.loadedDays()).has(lastEndedDay(world.clock.now()))).toBe(false);
    let hours = 1;
    do world.clock.advance(62 * MINUTE_MS);
    while ((await world.exportOnce(hours === 1 ? 'crashed' : 'closed')) !== 'done' && hours++ < 24);
    expect((await world.loadedDays()).size).toBe(2);
    expect(hours).toBeLessThanOrEqual(2);
    expect([...answered(world).values()].every((count) => count === 1)).toBe(true);
    expect(world.platform.busiestHour()).toBeLessThanOrEqual(40);
  });

  test('that change between their parts are read again from the start', async () => {
    const world = await openWorld({ maxWait: '0s', days: 1, pages: 10_500, limit: 40 });
    expect(await world.exportOnce('closed')).toBeInstanceOf(PausedError);
    world.restate([world.firstDay]);
    let hours = 1;
    do world.clock.advance(62 * MINUTE_MS);
    while ((await world.exportOnce('closed')) !== 'done' && hours++ < 24);
    expect((await world.loadedDays()).size).toBe(1);
    const beginnings = world.platform.views.filter(
      ({ from, to, offset, limit, status }) =>
        from === world.firstDay && to === addDays(from, 1) && offset === 0 && limit > 1 && status === 200,
    );
    expect(beginnings).toHaveLength(2);
  });

  test('that take more than the hourly limit are loaded by an export that may wait for the next hour', async () => {
    const world = await openWorld({ maxWait: '2h', days: 3, pages: 10_500, limit: 40 });
    expect(await world.exportOnce('closed')).toBe('done');
    expect((await world.loadedDays()).size).toBe(3);
    expect(world.platform.busiestHour()).toBeLessThanOrEqual(40);
  });
});

describe('recent days with more changes than one hour is enough to find and reload', () => {
  test('are corrected over several hours', async () => {
    const world = await openWorld({ maxWait: '0s', days: 40, pages: 251, limit: 20 });
    const { clock } = world;
    const untilDone = async (): Promise<number> => {
      let hours = 0;
      while ((await world.exportOnce('closed')) !== 'done' && hours++ < 100) clock.advance(62 * MINUTE_MS);
      return hours;
    };
    await untilDone();
    clock.advance(24 * 60 * MINUTE_MS);
    const changed = [5, 8, 11, 14, 17, 20, 23, 26, 29, 32].map((ago) =>
      addDays(lastEndedDay(clock.now()), -ago),
    );
    world.restate(changed);
    const before = answered(world);
    expect(await untilDone()).toBeLessThanOrEqual(6);
    const after = answered(world);
    for (const at of changed) expect(after.get(`${at} 250`), at).toBe((before.get(`${at} 250`) ?? 0) + 1);
    expect(refusals(world).count).toBe(0);
  });
});
