import { addMinutes } from 'date-fns';
import pLimit from 'p-limit';
import { describe, expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { READS_AT_ONCE } from '../../src/api/transport.js';
import { addDays, type Day, day, dayOf, daysBetween, daysIn, lastEndedDay } from '../../src/day.js';
import { readDayLedger } from '../../src/export/ledger.js';
import { resolveRange } from '../../src/export/range.js';
import { MINUTE_MS } from '../budget/open-budget.js';
import { exportHistory } from './export-history.js';
import { limitedSite, type LimitedSiteOptions } from './limited-site.js';
import { PROJECT } from './open-export.js';
import { expectWhole } from './stored-days.js';

const PAGES = 751;
const REQUESTS_A_DAY = 4;
/** Concurrent days, by default. */
const CONCURRENCY = 6;
const REQUEST_MS = 200;

type World = Awaited<ReturnType<typeof openWorld>>;

/** A history on a platform that answers 100 requests an hour, including those of others. */
async function openWorld({
  pages = PAGES,
  ...options
}: Pick<LimitedSiteOptions, 'days'> & Partial<LimitedSiteOptions>) {
  const site = await limitedSite({ pages, ...options, requestMs: REQUEST_MS });
  const { clock, settings, inProcess } = site;
  const { settleDays } = settings.history;
  /** Exports what is due in a new process, and returns how it ended. */
  const exportOnce = (to?: Day): Promise<PausedError | 'done'> =>
    inProcess(async ({ warehouse, clientOf }) => {
      const common = { warehouse, client: clientOf({ id: PROJECT }), project: PROJECT };
      try {
        const range =
          (await resolveRange({ ...common, start: 'auto', now: clock.now(), to })) ??
          expect.fail('the platform has views');
        const task = { ...common, range, settleDays, inTurn: pLimit(READS_AT_ONCE), now: clock.now };
        const { stopped } = await exportHistory(task);
        if (stopped !== undefined) throw stopped as Error;
        return 'done';
      } catch (error) {
        if (error instanceof PausedError) return error;
        throw error;
      }
    });
  const loadedDays = () =>
    inProcess(async ({ warehouse }) => {
      const ledger = await readDayLedger(warehouse, PROJECT);
      return new Map([...ledger.values()].map((record) => [record.day, record.attempted_at]));
    });
  /** Exports once an hour until everything is loaded, and returns how many hours that took. */
  const untilDone = async (): Promise<number> => {
    let hours = 0;
    while ((await exportOnce()) !== 'done' && hours++ < 100) clock.advance(62 * MINUTE_MS);
    return hours;
  };
  return { ...site, exportOnce, loadedDays, untilDone };
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
    const world = await openWorld({ history: { maxWait }, days: DAYS, othersUsed });
    const { clock, platform, firstDay, inProcess } = world;
    const begun = clock.now();
    let processes = 0;
    let nights = 0;
    let outcome: PausedError | 'done' = new PausedError('not begun', begun);
    while (outcome !== 'done' || nights < 2) {
      const nightAt = new Date(`${dayOf(clock.now())}T02:15:00Z`);
      const isNight = clock.now().getTime() === nightAt.getTime();
      const tonight = lastEndedDay(clock.now());
      // Before three of them, a process is killed that does not return what it reserved.
      if ([3, 7, 12].includes(processes++))
        await inProcess(({ clientOf }) => clientOf({ id: PROJECT }).lease(5, 'urgent')).catch(
          () => undefined,
        );
      outcome = await world.exportOnce();
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
    const world = await openWorld({ days: 200 });
    const { clock } = world;
    await world.exportOnce();
    clock.advance(new Date('2026-11-19T02:10:00Z').getTime() - clock.now().getTime());
    const backfill = await world.exportOnce(day('2026-11-01'));
    expect(backfill).toBeInstanceOf(PausedError);
    clock.advance(5 * MINUTE_MS);
    await world.exportOnce();
    const loadedAt = (await world.loadedDays()).get(day('2026-11-18'));
    expect(loadedAt?.getTime()).toBeLessThan(new Date('2026-11-19T02:17:00Z').getTime());
    expect(refusals(world).count).toBe(0);
  });

  test('is not dropped halfway if the backfill in the same export runs out of budget', async () => {
    const world = await openWorld({ days: 100 });
    await world.exportOnce();
    world.clock.advance(new Date('2026-11-19T02:05:00Z').getTime() - world.clock.now().getTime());
    await world.exportOnce(day('2026-11-01'));
    expect(await world.exportOnce()).toBeInstanceOf(PausedError);
    expect((await world.loadedDays()).has(day('2026-11-18'))).toBe(true);
  });
});

describe('days of many requests', () => {
  test('are read in parts across hours: no request is sent twice', async () => {
    // 20 requests a day, six days at a time: if all began at once, none would be finished within 100 an hour.
    const world = await openWorld({ days: 12, pages: 5_000 });
    expect(await world.untilDone()).toBeLessThanOrEqual(3);
    expect((await world.loadedDays()).size).toBe(12);
    const counts = [...answered(world).values()];
    expect(counts).toHaveLength(12 * 20);
    expect(counts.every((count) => count === 1)).toBe(true);
    await world.inProcess(({ warehouse }) => expectWhole(warehouse));
  });

  test('are loaded even if a single one takes more than half of the hourly limit', async () => {
    const world = await openWorld({ days: 3, pages: 6_000, limit: 40 });
    expect(await world.untilDone()).toBeLessThanOrEqual(2);
    expect((await world.loadedDays()).size).toBe(3);
  });

  test('that take more than the hourly limit are loaded over several hours by the service', async () => {
    const world = await openWorld({ days: 2, pages: 10_500, limit: 40 });
    expect(await world.exportOnce()).toBeInstanceOf(PausedError);
    expect((await world.loadedDays()).has(lastEndedDay(world.clock.now()))).toBe(false);
    world.clock.advance(62 * MINUTE_MS);
    expect(await world.untilDone()).toBeLessThanOrEqual(1);
    expect((await world.loadedDays()).size).toBe(2);
    expect([...answered(world).values()].every((count) => count === 1)).toBe(true);
    expect(world.platform.busiestHour()).toBeLessThanOrEqual(40);
  });

  test('that change between their parts are read again from the start', async () => {
    const world = await openWorld({ days: 1, pages: 10_500, limit: 40 });
    expect(await world.exportOnce()).toBeInstanceOf(PausedError);
    world.restate([world.firstDay]);
    world.clock.advance(62 * MINUTE_MS);
    await world.untilDone();
    expect((await world.loadedDays()).size).toBe(1);
    const beginnings = world.platform.views.filter(
      ({ from, to, offset, limit, status }) =>
        from === world.firstDay && to === addDays(from, 1) && offset === 0 && limit > 1 && status === 200,
    );
    expect(beginnings).toHaveLength(2);
  });

  test('that take more than the hourly limit are loaded by an export that may wait for the next hour', async () => {
    const world = await openWorld({ history: { maxWait: '2h' }, days: 3, pages: 10_500, limit: 40 });
    expect(await world.exportOnce()).toBe('done');
    expect((await world.loadedDays()).size).toBe(3);
    expect(world.platform.busiestHour()).toBeLessThanOrEqual(40);
  });
});

test('recent days with more changes than one hour is enough to find and reload are corrected over several hours', async () => {
  const world = await openWorld({ days: 40, pages: 251, limit: 20 });
  const { clock, untilDone } = world;
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
