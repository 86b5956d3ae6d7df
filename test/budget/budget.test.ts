import { nextMinute } from '../../src/format/days.js';
import { addMinutes, addSeconds } from 'date-fns';
import { join } from 'node:path';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { PausedError } from '../../src/api/errors.js';
import { readHour } from '../../src/budget/ledger.js';
import { freeAt, LEASE_LIFE_MS } from '../../src/api/hour.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { clientOf, errorOf, NO_ROWS, PAGE } from '../api/open-client.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { reply } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import {
  BUCKET,
  budgetOn,
  busiestHour,
  DAY_MS,
  MINUTE_MS,
  openBudget,
  type SleepingClock,
  sleepingClock,
  takeAll,
  takeOne,
} from './open-budget.js';

const usedIn = async (warehouse: Warehouse, clock: SleepingClock, bucket = BUCKET): Promise<number> =>
  (await readHour(warehouse, bucket, clock.now())).used(clock.now());

const pausedUntilOf = async (promise: Promise<unknown>): Promise<Date> => {
  const error = await errorOf(promise);
  if (!(error instanceof PausedError)) throw error;
  return error.resumeAt;
};

describe('the rolling hour', () => {
  test('is kept as the server sees it, over six hours of requests at an uneven pace that arrive late', async () => {
    const { clock, budget } = await openBudget({ reserve: () => Promise.resolve(20) });
    const arrived: Date[] = [];
    for (let sent = 0; sent < 600; sent++) {
      await takeOne(budget, sent % 3 === 0 ? 'urgent' : 'backfill');
      // A request takes up to nine seconds to arrive, and sometimes the next one leaves a minute later.
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
      const lease = await budgetOn(warehouse, clock, { maxWaitMs: 0 }).lease(requests + 5, 'urgent');
      for (let count = 0; count < requests; count++) {
        await lease.next();
        sent.push(clock.now());
        clock.advance(100);
      }
      if (ends === 'closed') await lease.end();
      await closeNow(warehouse);
      clock.advance(MINUTE_MS);
    };
    await life(33, 'closed');
    await life(25, 'crashed');
    await life(12, 'closed');
    const warehouse = await liveWarehouse(path);
    const used = await usedIn(warehouse, clock);
    expect(used).toBe(sent.length + 5);
    expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(100 - used);
  });

  test('at its boundary: with a limit of 5, each request leaves an hour after the fifth one before it, or soon after', async () => {
    const { clock, budget } = await openBudget({ limit: 5 });
    const sent: number[] = [];
    // The last second of a lease, and a request that takes longest to arrive.
    for (let day = 0; day < 20; day++) {
      const lease = await budget.lease(5, 'urgent');
      clock.advance(LEASE_LIFE_MS - 1_000);
      for (let request = 0; request < 5; request++) {
        await lease.next();
        sent.push(clock.now().getTime() + (day % 2 === 0 ? 10_000 : 0));
      }
      await lease.end();
    }
    const apart = sent.slice(5).map((at, index) => at - (sent[index] ?? 0));
    expect(Math.min(...apart)).toBeGreaterThanOrEqual(60 * MINUTE_MS);
    expect(Math.max(...apart)).toBeLessThan(63 * MINUTE_MS);
  });

  test('gets back what a lease has not used when it ends', async () => {
    const { clock, warehouse, budget } = await openBudget();
    const lease = await budget.lease(10, 'urgent');
    await lease.next();
    expect(await usedIn(warehouse, clock)).toBe(10);
    await lease.end();
    expect(await usedIn(warehouse, clock)).toBe(1);
  });

  test('a lease that takes longer than allowed is renewed, and counts from then', async () => {
    const { clock, warehouse, budget } = await openBudget();
    const lease = await budget.lease(10, 'urgent');
    await lease.next();
    clock.advance(5 * MINUTE_MS);
    await lease.next();
    expect(await usedIn(warehouse, clock)).toBe(10);
    clock.advance(57 * MINUTE_MS);
    expect(await usedIn(warehouse, clock)).toBe(9);
  });

  test('a lease of too few requests gets more, as many as it had', async () => {
    const { clock, warehouse, budget } = await openBudget();
    const lease = await budget.lease(2, 'urgent');
    for (let sent = 0; sent < 5; sent++) await lease.next();
    expect(await usedIn(warehouse, clock)).toBe(8);
    await lease.end();
    expect(await usedIn(warehouse, clock)).toBe(5);
  });

  test('a clock set back does not keep a lease alive', async () => {
    const { clock, budget } = await openBudget({ limit: 10, maxWaitMs: 0 });
    const lease = await budget.lease(10, 'urgent');
    await lease.next();
    clock.advance(-30 * MINUTE_MS);
    for (let sent = 1; sent < 10; sent++) await lease.next();
    await lease.end();
    clock.advance(2 * MINUTE_MS);
    expect(await takeAll(budget)).toBe(0);
    // Once its requests count as if they were sent now, because another lease began, they are not taken back.
    const shared = budgetOn(await liveWarehouse(), clock, { maxWaitMs: 0 });
    const old = await shared.lease(5, 'urgent');
    clock.advance(-30 * MINUTE_MS);
    expect(await takeAll(shared)).toBe(95);
    await expect(old.next()).rejects.toThrow(PausedError);
    await old.end();
    clock.advance(62 * MINUTE_MS);
    expect(await takeAll(shared)).toBe(100);
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

  test('is counted separately for each bucket', async () => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0 }))).toBe(100);
    const bucket = 'organization acme';
    expect(await takeAll(budgetOn(warehouse, clock, { maxWaitMs: 0, bucket }))).toBe(100);
  });

  test('an unlimited budget lets everything through and leaves no row behind', async () => {
    const warehouse = await liveWarehouse();
    const clock = sleepingClock();
    const budget = budgetOn(warehouse, clock, { limit: 'unlimited', maxWaitMs: 0 });
    const leases = await Promise.all(Array.from({ length: 50 }, () => budget.lease(1_000, 'backfill')));
    for (const lease of leases) for (let sent = 0; sent < 10; sent++) await lease.next();
    for (const lease of leases) await lease.end();
    expect(await usedIn(warehouse, clock)).toBe(0);
    expect(await warehouse.query('SELECT id FROM request_uses', z.object({ id: z.string() }))).toEqual([]);
  });
});

test('the reserve is kept from the backfill and available for the night', async () => {
  const reserve = () => Promise.resolve(17);
  const { budget } = await openBudget({ reserve, maxWaitMs: 0 });
  expect(await takeAll(budget, 'backfill')).toBe(83);
  const { message } = await errorOf(takeOne(budget, 'backfill'));
  expect(message).toMatch(/^Hourly limit reached: 83 of 100 used, 17 reserved for recent days\. The next/);
  expect(await takeAll(budget, 'urgent')).toBe(17);
  // Even if it is the whole budget, a backfill makes progress.
  const whole = { limit: 4, reserve: () => Promise.resolve(4), maxWaitMs: 0 };
  expect(await takeAll(budgetOn(await liveWarehouse(), sleepingClock(), whole), 'backfill')).toBe(1);
});

describe('a lease', () => {
  test('that expired unused does not take room from others twice', async () => {
    const { clock, budget } = await openBudget();
    const slow = await budget.lease(5, 'urgent');
    clock.advance(LEASE_LIFE_MS);
    await slow.next();
    // All of ten requests may be under way at once: this one waits forever if the first counts as ten.
    const other = await budget.lease(5, 'urgent');
    await Promise.all([slow.end(), other.end()]);
  });

  test('starts only when all of it is free', async () => {
    const { clock, budget } = await openBudget({ maxWaitMs: 0 });
    const start = clock.now();
    for (let sent = 0; sent < 91; sent++) await takeOne(budget);
    expect(await pausedUntilOf(budget.lease(10, 'urgent'))).toEqual(freeAt(start));
    expect(await takeAll(budget)).toBe(9);
  });

  test('of more than a tenth of the limit starts with that, and continues with what is free', async () => {
    const { clock, warehouse, budget } = await openBudget({ maxWaitMs: 0 });
    for (let sent = 0; sent < 85; sent++) await takeOne(budget);
    const lease = await budget.lease(60, 'urgent');
    for (let sent = 0; sent < 15; sent++) await lease.next();
    await expect(lease.next()).rejects.toThrow(PausedError);
    await lease.end();
    expect(await usedIn(warehouse, clock)).toBe(100);
    clock.advance(62 * MINUTE_MS);
    expect(await takeAll(budget)).toBe(100);
  });

  test('waits for others if more than a tenth of the limit would be in progress', async () => {
    const { clock, warehouse, budget } = await openBudget();
    const order: string[] = [];
    const first = await budget.lease(4, 'backfill');
    const second = await budget.lease(6, 'backfill');
    const third = budget.lease(5, 'backfill').then((lease) => {
      order.push('third begins');
      return lease.end();
    });
    for (let look = 0; look < 3; look++) expect(await usedIn(warehouse, clock)).toBe(10);
    for (const [name, lease] of Object.entries({ first, second })) {
      for (let sent = 0; sent < 4; sent++) await lease.next();
      order.push(`${name} ends`);
      await lease.end();
    }
    await third;
    expect(order).toEqual(['first ends', 'second ends', 'third begins']);
  });

  test('waits only for one other of its project, so that a long backfill delays no other project', async () => {
    const { budget } = await openBudget();
    const begun: string[] = [];
    const begin = async (project: string) => {
      const lease = await budget.lease(1, 'backfill', undefined, project);
      begun.push(project);
      await lease.end();
    };
    await Promise.all(['a', 'a', 'a', 'b'].map(begin));
    expect(begun).toEqual(['a', 'b', 'a', 'a']);
  });

  test('that is refused halfway through leaves nothing in progress', async () => {
    const { clock, budget } = await openBudget({ maxWaitMs: 0 });
    const lease = await budget.lease(60, 'urgent');
    await lease.next();
    await budget.refused(undefined);
    await expect(lease.next()).rejects.toThrow(PausedError);
    await lease.end();
    clock.advance(62 * MINUTE_MS);
    await (await budget.lease(60, 'urgent')).end();
  });
});

describe('a refusal', () => {
  const at = sleepingClock().now();
  const retryAfter = { seconds: '1800', date: addMinutes(at, 30).toUTCString() } as const;

  test.each([
    ['seconds, JSON', JSON.stringify({ error: 'Too many requests' }), retryAfter.seconds],
    ['a date, JSON', JSON.stringify({ error: 'Too many requests' }), retryAfter.date],
    ['seconds, plain text', 'Too many requests', retryAfter.seconds],
    ['no wait, JSON', JSON.stringify({ error: 'Too many requests' }), undefined],
    ['no wait, plain text', 'Too many requests', undefined],
  ])('that means the hourly limit is used up is accepted at once: %s', async (_, body, header) => {
    const clock = sleepingClock();
    const warehouse = await liveWarehouse();
    const headers = header === undefined ? {} : { 'retry-after': header };
    const refuse = (response: ServerResponse) => response.writeHead(429, headers).end(body);
    const pace = budgetOn(warehouse, clock, { maxWaitMs: 2 * MINUTE_MS });
    const { client, server } = await clientOf(refuse, { now: clock.now, pace });
    // Others have used what our count says is left: a second refusal would be our own mistake.
    const until = header === undefined ? freeAt(at) : addMinutes(at, 30);
    expect(await pausedUntilOf(client.views(PAGE))).toEqual(until);
    expect(server.seen).toHaveLength(1);
    clock.advance(30 * MINUTE_MS);
    expect(await pausedUntilOf(client.views(PAGE))).toEqual(freeAt(at));
    expect(server.seen).toHaveLength(1);
  });

  test('of a burst is waited out, and costs no budget', async () => {
    const { clock, warehouse, budget } = await openBudget({ maxWaitMs: 2 * MINUTE_MS });
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
    expect(await usedIn(warehouse, clock)).toBe(2);
  });

  test.each([
    { seconds: 60, means: 'a burst', used: 3 },
    { seconds: 61, means: 'the hour', used: 100 },
  ])('that names $seconds s means $means', async ({ seconds, used }) => {
    const { clock, warehouse, budget } = await openBudget({ maxWaitMs: 0 });
    const lease = await budget.lease(3, 'urgent');
    await lease.next();
    await budget.refused(seconds * 1_000);
    expect(await usedIn(warehouse, clock)).toBe(used);
    const until = used === 3 ? addSeconds(at, 60) : freeAt(at);
    expect(await pausedUntilOf(takeOne(budget))).toEqual(until);
    // What the lease has left is still free after a burst, and no longer counts as free after the other.
    clock.advance(61_000);
    if (used === 3) await lease.next();
    else expect(await pausedUntilOf(lease.next())).toEqual(until);
    expect(await usedIn(warehouse, clock)).toBe(used);
  });

  test('is over once a trial is answered, which is sent in spite of it', async () => {
    const { clock, warehouse, budget } = await openBudget({ maxWaitMs: 0 });
    const { client, server } = await clientOf(
      (response, count) => {
        if (count < 3) reply(response, 429, { error: 'Too many requests' }, { 'retry-after': '3600' });
        else reply(response, 200, NO_ROWS);
      },
      { now: clock.now, pace: budget },
    );
    const error = await errorOf(client.views(PAGE));
    expect(error.message).toMatch(
      /^The platform refused a request.+ To ask it again now: readership doctor$/,
    );
    // Sent once, and refused once more.
    await expect(client.views(PAGE, { priority: 'trial' })).rejects.toThrow(PausedError);
    await expect(client.views(PAGE)).rejects.toThrow(PausedError);
    expect(server.seen).toHaveLength(2);
    await client.views(PAGE, { priority: 'trial' });
    await client.views(PAGE);
    expect(server.seen).toHaveLength(4);
    expect(await usedIn(warehouse, clock)).toBe(4);
    const next = budgetOn(warehouse, clock, { maxWaitMs: 0 });
    expect(await takeAll(next)).toBe(96);
    // Only a refusal is a reason to send more than the limit seems to allow.
    await expect(next.lease(1, 'trial')).rejects.toThrow('Hourly limit reached: 100 of 100 used.');
  });

  test('without a wait counts as one of others, of which a higher limit leaves more', async () => {
    const { clock, warehouse, budget } = await openBudget({ maxWaitMs: 0 });
    await budget.refused(undefined);
    const error = await errorOf(takeOne(budget));
    expect(error.message).toMatch(/^The platform refused a request/);
    expect(await takeAll(budgetOn(warehouse, clock, { limit: 150, maxWaitMs: 0 }))).toBe(50);
    await takeOne(budgetOn(warehouse, clock, { limit: 'unlimited', maxWaitMs: 0 }));
  });

  test('outlives the process that received it', async () => {
    const clock = sleepingClock();
    const path = join(await tempDir(), 'warehouse.duckdb');
    const first = await liveWarehouse(path);
    await budgetOn(first, clock, { limit: 'unlimited' }).refused(45 * MINUTE_MS);
    await closeNow(first);
    clock.advance(MINUTE_MS);
    const budget = budgetOn(await liveWarehouse(path), clock, { limit: 'unlimited', maxWaitMs: MINUTE_MS });
    expect(await pausedUntilOf(takeOne(budget))).toEqual(addMinutes(at, 45));
  });

  test('holds back all workers, including those already waiting for their turn', async () => {
    const { budget } = await openBudget({ maxWaitMs: 0 });
    await takeOne(budget);
    const waiting = Array.from({ length: 8 }, () => errorOf(takeOne(budget)));
    const recorded = budget.refused(undefined);
    for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(PausedError);
    await recorded;
  });

  test('of several requests in flight counts once, and the longest wait applies', async () => {
    const { clock, warehouse, budget } = await openBudget({ limit: 'unlimited', maxWaitMs: 0 });
    await Promise.all([budget.refused(90 * MINUTE_MS), budget.refused(undefined), budget.refused(1_000)]);
    expect(await pausedUntilOf(takeOne(budget))).toEqual(addMinutes(at, 90));

    const limited = budgetOn(warehouse, clock, { bucket: 'other', maxWaitMs: 0 });
    await takeOne(limited);
    await Promise.all([limited.refused(undefined), limited.refused(undefined), limited.refused(undefined)]);
    expect(await usedIn(warehouse, clock, 'other')).toBe(100);
  });
});

describe('waiting', () => {
  test('longer than maxWait ends with a PausedError that names the time', async () => {
    const { clock, budget } = await openBudget({ maxWaitMs: 2 * MINUTE_MS });
    const start = clock.now();
    expect(await takeAll(budget)).toBe(100);
    const error = await errorOf(takeOne(budget));
    expect(error.message).toBe(
      `Hourly limit reached: 100 of 100 used. The next request can be sent on ${nextMinute(freeAt(start))}.`,
    );
    expect(error).toMatchObject({ exitCode: 75 });
    clock.advance(freeAt(start).getTime() - start.getTime() - 2 * MINUTE_MS);
    await takeOne(budget);
    expect(clock.now()).toEqual(freeAt(start));
  });

  test('ends with the reason for an interruption', async () => {
    const clock = sleepingClock();
    const interruption = new AbortController();
    const sleep = (ms: number, signal?: AbortSignal) => {
      interruption.abort(new Error('interrupted by SIGTERM'));
      return clock.sleep(ms, signal);
    };
    const budget = budgetOn(await liveWarehouse(), clock, { limit: 1, sleep });
    await takeOne(budget);
    const error = await errorOf(takeOne(budget, 'urgent', interruption.signal));
    expect(error.message).toBe('interrupted by SIGTERM');
  });

  test('reports how long everyone waits, and why', async () => {
    const told: unknown[] = [];
    const { clock, budget } = await openBudget({ limit: 1, onWait: (...why) => told.push(why) });
    const start = clock.now();
    await takeOne(budget);
    await takeOne(budget);
    expect(told).toEqual([[freeAt(start), 'Hourly limit reached: 1 of 1 used.']]);
    expect(clock.now()).toEqual(freeAt(start));
  });

  test.each([
    ['unlimited', 2_000, 2],
    ['unlimited', undefined, 60],
    [100, 2_000, 2],
  ] as const)('with %s requests an hour, says that a server asked for %s ms', async (limit, ms, seconds) => {
    const told: unknown[] = [];
    const { clock, budget } = await openBudget({ limit, onWait: (...why) => told.push(why) });
    const start = clock.now();
    const lease = await budget.lease(1, 'urgent');
    await budget.refused(ms);
    await lease.next();
    expect(told).toEqual([
      [addSeconds(start, seconds), 'The platform refused a request, because of its own limit.'],
    ]);
  });
});
