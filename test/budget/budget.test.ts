import { nextMinute } from '../../src/format/days.js';
import { addMinutes, addSeconds } from 'date-fns';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { readHour } from '../../src/budget/budget.js';
import { BLOCK_LIFE_MS, freeAt, usedRequests } from '../../src/budget/hour.js';
import type { RequestBudget } from '../../src/budget/budget.js';
import { clientOf, faultOf, NO_ROWS, PAGE } from '../api/open-client.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { reply } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { budgetOn, busiestHour, DAY_MS, MINUTE_MS, sleepingClock } from './open-budget.js';

/** Takes as many requests as can be had without waiting. */
async function takeAll(budget: RequestBudget, priority: 'urgent' | 'backfill' = 'urgent'): Promise<number> {
  for (let taken = 0; ; taken++) {
    try {
      await budget.before(priority);
    } catch (error) {
      if (error instanceof PausedError) return taken;
      throw error;
    }
  }
}

const pausedUntilOf = async (promise: Promise<unknown>): Promise<Date> => {
  const error = await faultOf(promise);
  if (!(error instanceof PausedError)) throw error;
  return error.resumeAt;
};

describe('the rolling hour', () => {
  test('is kept as the server sees it, over six hours of requests at an uneven pace that arrive late', async () => {
    const clock = sleepingClock();
    const budget = budgetOn(await liveWarehouse(), clock, { reserve: 20 });
    const arrived: Date[] = [];
    for (let sent = 0; sent < 600; sent++) {
      await budget.before(sent % 3 === 0 ? 'urgent' : 'backfill');
      // Up to nine seconds on its way, and at times a minute until the next.
      arrived.push(addSeconds(clock.now(), (sent * 7) % 10));
      clock.advance(sent % 11 === 0 ? 58_000 : (sent % 5) * 300);
    }
    expect(busiestHour(arrived)).toBeGreaterThan(75);
    expect(busiestHour(arrived)).toBeLessThanOrEqual(100);
  });

  test('is kept across three restarts, one of them a crash, which only overcounts', async () => {
    const clock = sleepingClock();
    const path = join(await tempDir(), 'warehouse.duckdb');
    const sent: Date[] = [];
    const life = async (requests: number, ends: 'closed' | 'crashed') => {
      const warehouse = await liveWarehouse(path);
      const budget = budgetOn(warehouse, clock, { maxWaitMs: 0 });
      for (let count = 0; count < requests; count++) {
        await budget.before('urgent');
        sent.push(clock.now());
        clock.advance(1_000);
      }
      if (ends === 'closed') await budget.close();
      await closeNow(warehouse);
      clock.advance(MINUTE_MS);
    };
    await life(33, 'closed');
    await life(25, 'crashed');
    await life(12, 'closed');
    const warehouse = await liveWarehouse(path);
    const used = usedRequests(await readHour(warehouse, 'READERSHIP_API_KEY', clock.now()));
    expect(used).toBe(sent.length + 5);
    expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(100 - used);
  });

  test('gives back what a block has left when its time is over, and when it is closed', async () => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    const budget = budgetOn(warehouse, clock);
    const used = async () => usedRequests(await readHour(warehouse, 'READERSHIP_API_KEY', clock.now()));
    await budget.before('urgent');
    expect(await used()).toBe(10);
    clock.advance(BLOCK_LIFE_MS);
    await budget.before('urgent');
    expect(await used()).toBe(11);
    await budget.close();
    expect(await used()).toBe(2);
  });

  test('a clock set back does not keep a block alive', async () => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    const budget = budgetOn(warehouse, clock, { limit: 10, maxWaitMs: 0 });
    await budget.before('urgent');
    clock.advance(-30 * MINUTE_MS);
    expect(await takeAll(budget)).toBe(9);
    clock.advance(2 * MINUTE_MS);
    expect(await takeAll(budget)).toBe(0);
  });

  test.each([60 * MINUTE_MS, DAY_MS, 365 * DAY_MS])(
    'counts what was used before the clock was set back by %i ms, for an hour from then',
    async (backMs) => {
      const clock = sleepingClock();
      const warehouse = await liveWarehouse();
      expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(100);
      clock.advance(-backMs);
      expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(0);
      clock.advance(62 * MINUTE_MS);
      expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(100);
    },
  );

  test('is one budget for each key', async () => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(100);
    expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0, bucket: 'OTHER_KEY' }))).toBe(100);
  });

  test('an unlimited budget lets everything through and leaves no row behind', async () => {
    const warehouse = await liveWarehouse();
    const budget = budgetOn(warehouse, sleepingClock(), { limit: 'unlimited', maxWaitMs: 0 });
    for (let sent = 0; sent < 500; sent++) await budget.before('backfill');
    expect(await budget.hasRoom(1_000_000, 'backfill')).toBe(true);
    const hour = await readHour(warehouse, 'READERSHIP_API_KEY', sleepingClock().now());
    expect(hour).toEqual({ uses: [], pausedUntil: undefined });
  });
});

describe('the reserve', () => {
  test('is kept from the backfill and there for the night', async () => {
    const budget = budgetOn(await liveWarehouse(), sleepingClock(), { reserve: 17, maxWaitMs: 0 });
    expect(await takeAll(budget, 'backfill')).toBe(83);
    expect((await faultOf(budget.before('backfill'))).message).toMatch(
      /^Hourly limit reached: 83 of 100 used, 17 reserved for recent days\. The next/,
    );
    expect(await takeAll(budget, 'urgent')).toBe(17);
  });

  test('a backfill gets on even where the reserve is the whole budget', async () => {
    const budget = budgetOn(await liveWarehouse(), sleepingClock(), { limit: 4, reserve: 4, maxWaitMs: 0 });
    expect(await takeAll(budget, 'backfill')).toBe(1);
  });
});

describe('room for a whole day', () => {
  test('is there up to the last request, for each priority its own', async () => {
    const budget = budgetOn(await liveWarehouse(), sleepingClock(), { reserve: 17, maxWaitMs: 0 });
    for (let sent = 0; sent < 5; sent++) await budget.before('backfill');
    expect(await budget.hasRoom(78, 'backfill')).toBe(true);
    expect(await budget.hasRoom(79, 'backfill')).toBe(false);
    expect(await takeAll(budget, 'backfill')).toBe(78);
    expect(await budget.hasRoom(17, 'urgent')).toBe(true);
    expect(await budget.hasRoom(18, 'urgent')).toBe(false);
  });

  test('is waited for, and never for more than there can be', async () => {
    const clock = sleepingClock();
    const start = clock.now();
    const budget = budgetOn(await liveWarehouse(), clock, { limit: 20 });
    for (let sent = 0; sent < 10; sent++) await budget.before('urgent');
    clock.advance(10 * MINUTE_MS);
    for (let sent = 0; sent < 5; sent++) await budget.before('urgent');
    await budget.room(15, 'urgent');
    expect(clock.now()).toEqual(freeAt(start));
    await budget.room(1_000, 'urgent');
    expect(clock.now()).toEqual(freeAt(addMinutes(start, 10)));
  });
});

describe('a refusal', () => {
  const at = sleepingClock().now();
  const retryAfter = { seconds: '1800', date: addMinutes(at, 30).toUTCString() } as const;

  test.each([
    ['seconds, JSON', { error: 'Too many requests' }, retryAfter.seconds],
    ['a date, JSON', { error: 'Too many requests' }, retryAfter.date],
    ['seconds, plain text', 'Too many requests', retryAfter.seconds],
    ['no wait, JSON', { error: 'Too many requests' }, undefined],
    ['no wait, plain text', 'Too many requests', undefined],
  ])('that means the hour is believed at once: %s', async (_, body, header) => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    const { client, server } = await clientOf(
      (response) => {
        response.writeHead(429, header === undefined ? {} : { 'retry-after': header });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      },
      { now: clock.now, pace: budgetOn(warehouse, clock, { maxWaitMs: 2 * MINUTE_MS }) },
    );
    // What our own count says is left, others have spent: a second refusal would be our own fault.
    expect(await pausedUntilOf(client.views(PAGE))).toEqual(
      header === undefined ? freeAt(at) : addMinutes(at, 30),
    );
    expect(server.seen).toHaveLength(1);
    clock.advance(30 * MINUTE_MS);
    expect(await pausedUntilOf(client.views(PAGE))).toEqual(freeAt(at));
    expect(server.seen).toHaveLength(1);
  });

  test('of a burst is waited for, and costs no budget', async () => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    const budget = budgetOn(warehouse, clock, { maxWaitMs: 2 * MINUTE_MS });
    const { client, server } = await clientOf(
      (response, count) => {
        if (count === 1) reply(response, 429, { error: 'Slow down' }, { 'retry-after': '30' });
        else reply(response, 200, NO_ROWS);
      },
      { now: clock.now, pace: budget },
    );
    await client.views(PAGE);
    expect(server.seen).toHaveLength(2);
    expect(clock.now()).toEqual(addSeconds(at, 30));
    await budget.close();
    expect(usedRequests(await readHour(warehouse, 'READERSHIP_API_KEY', clock.now()))).toBe(2);
  });

  test('survives the end of the process that met it', async () => {
    const clock = sleepingClock();
    const path = join(await tempDir(), 'warehouse.duckdb');
    const first = await liveWarehouse(path);
    await budgetOn(first, clock, { limit: 'unlimited' }).refused(45 * MINUTE_MS);
    await closeNow(first);
    clock.advance(MINUTE_MS);
    const budget = budgetOn(await liveWarehouse(path), clock, { limit: 'unlimited', maxWaitMs: MINUTE_MS });
    expect(await pausedUntilOf(budget.before('urgent'))).toEqual(addMinutes(at, 45));
  });

  test('holds back all workers together, those already waiting for their turn too', async () => {
    const clock = sleepingClock();
    const budget = budgetOn(await liveWarehouse(), clock, { maxWaitMs: 0 });
    await budget.before('urgent');
    const waiting = Array.from({ length: 8 }, () => faultOf(budget.before('urgent')));
    const recorded = budget.refused(undefined);
    for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(PausedError);
    await recorded;
  });

  test('of several requests in flight counts once, and the longest wait holds', async () => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    const budget = budgetOn(warehouse, clock, { limit: 'unlimited', maxWaitMs: 0 });
    await Promise.all([budget.refused(90 * MINUTE_MS), budget.refused(undefined), budget.refused(1_000)]);
    expect(await pausedUntilOf(budget.before('urgent'))).toEqual(addMinutes(at, 90));

    const limited = budgetOn(warehouse, clock, { bucket: 'OTHER_KEY', maxWaitMs: 0 });
    await limited.before('urgent');
    await Promise.all([limited.refused(undefined), limited.refused(undefined), limited.refused(undefined)]);
    expect(usedRequests(await readHour(warehouse, 'OTHER_KEY', clock.now()))).toBe(100);
  });
});

describe('waiting', () => {
  test('longer than maxWait ends in a PausedError that names the moment', async () => {
    const clock = sleepingClock();
    const start = clock.now();
    const budget = budgetOn(await liveWarehouse(), clock, { maxWaitMs: 2 * MINUTE_MS });
    expect(await takeAll(budget)).toBe(100);
    const error = await faultOf(budget.before('urgent'));
    expect(error.message).toBe(
      `Hourly limit reached: 100 of 100 used. The next request can be sent at ${nextMinute(freeAt(start))}.`,
    );
    expect(error).toMatchObject({ exitCode: 75 });
    clock.advance(freeAt(start).getTime() - start.getTime() - 2 * MINUTE_MS);
    await budget.before('urgent');
    expect(clock.now()).toEqual(freeAt(start));
  });

  test('ends with the reason of an interruption', async () => {
    const clock = sleepingClock();
    const interruption = new AbortController();
    const sleep = (ms: number, signal?: AbortSignal) => {
      interruption.abort(new Error('interrupted by SIGTERM'));
      return clock.sleep(ms, signal);
    };
    const budget = budgetOn(await liveWarehouse(), clock, { limit: 1, sleep });
    await budget.before('urgent');
    expect((await faultOf(budget.before('urgent', interruption.signal))).message).toBe(
      'interrupted by SIGTERM',
    );
  });

  test('tells how long everybody waits, and why', async () => {
    const clock = sleepingClock();
    const start = clock.now();
    const told: unknown[] = [];
    const budget = budgetOn(await liveWarehouse(), clock, { limit: 1, onWait: (...why) => told.push(why) });
    await budget.before('urgent');
    await budget.before('urgent');
    expect(told).toEqual([[freeAt(start), 'Hourly limit reached: 1 of 1 used.']]);
    expect(clock.now()).toEqual(freeAt(start));
  });

  test('does not take a pause that the server asked for as a budget that is spent', async () => {
    const clock = sleepingClock();
    const told: string[] = [];
    const onWait = (_: Date, why: string) => told.push(why);
    const budget = budgetOn(await liveWarehouse(), clock, { limit: 'unlimited', onWait });
    await budget.refused(2_000);
    await budget.before('urgent');
    expect(told).toEqual(['The server asked for a pause.']);
  });
});
