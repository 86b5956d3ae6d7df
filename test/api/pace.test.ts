import { addMinutes, addSeconds, differenceInSeconds } from 'date-fns';
import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { freeAt, hourOf } from '../../src/api/hour.js';
import { READS_AT_ONCE } from '../../src/api/transport.js';
import { readRequests } from '../../src/state/platform.js';
import type { State } from '../../src/state/state.js';
import { nextMinute } from '../../src/format/days.js';
import { clientOf, errorOf, NO_ROWS, PAGE } from './open-client.js';
import { openTestState } from '../open-state.js';
import { reply } from '../serve.js';
import { DAY_MS, MINUTE_MS, type SleepingClock, sleepingClock } from '../sleeping-clock.js';
import { tempDir } from '../temp-dir.js';
import { BUCKET, busiestHour, openPace, paceOn, takeAll } from './open-pace.js';

const usedIn = (state: State, clock: SleepingClock): number =>
  hourOf(readRequests(state, BUCKET, clock.now()), clock.now()).used(clock.now());

const pausedUntilOf = async (promise: Promise<unknown>): Promise<Date> => {
  const error = await errorOf(promise);
  if (!(error instanceof PausedError)) throw error;
  return error.resumeAt;
};

describe('a cap', () => {
  test('is kept as the server sees it, over six hours of requests at an uneven pace that arrive late', async () => {
    const { clock, pace } = await openPace();
    const arrived: Date[] = [];
    for (let sent = 0; sent < 600; sent++) {
      await pace.next();
      // A request takes up to nine seconds to arrive, and sometimes the next one leaves a minute later.
      arrived.push(addSeconds(clock.now(), (sent * 7) % 10));
      clock.advance(sent % 11 === 0 ? 58_000 : (sent % 5) * 300);
    }
    expect(busiestHour(arrived)).toBeGreaterThan(75);
    expect(busiestHour(arrived)).toBeLessThanOrEqual(100);
  });

  test('is kept across restarts, one of them after a kill', async () => {
    const clock = sleepingClock();
    const directory = await tempDir();
    const live = async (requests: number, ends: 'closed' | 'killed') => {
      const { state, close } = await openTestState(directory);
      const pace = paceOn(state, clock, { maxWaitMs: 0 });
      for (let sent = 0; sent < requests; sent++) await pace.next();
      if (ends === 'closed') await pace.record();
      await close();
      clock.advance(MINUTE_MS);
    };
    await live(33, 'closed');
    await live(25, 'killed');
    await live(12, 'closed');
    const { state } = await openTestState(directory);
    expect(usedIn(state, clock)).toBe(70);
    expect(await takeAll(paceOn(state, clock, { maxWaitMs: 0 }))).toBe(30);
  });

  test('is kept by several who send at the same time, also by one that read the hour before the others sent', async () => {
    const { clock, state } = await openPace();
    const open = () => paceOn(state, clock, { maxWaitMs: 0 });
    const paces = [open(), open(), open()];
    for (const pace of paces) await pace.next();
    const taken = await Promise.all(paces.map(takeAll));
    expect(taken.reduce((sum, one) => sum + one, paces.length)).toBe(100);
    expect(usedIn(state, clock)).toBe(100);
    clock.advance(62 * MINUTE_MS);
    expect(await takeAll(open())).toBe(100);
  });

  test('counts those that ask at the same time in one commit, and no more than other processes left', async () => {
    const { clock, state } = await openPace();
    const commits = vi.spyOn(state, 'transaction');
    const ask = (requests: number) => {
      const pace = paceOn(state, clock, { maxWaitMs: 0 });
      return Promise.allSettled(Array.from({ length: requests }, () => pace.next()));
    };
    const asked = (await Promise.all([ask(60), ask(60)])).flat();
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(100);
    expect(usedIn(state, clock)).toBe(100);
    // The second 60 are more than the first left, and then as many as that.
    expect(commits).toHaveBeenCalledTimes(3);
  });

  test.each([60 * MINUTE_MS, DAY_MS, 365 * DAY_MS])(
    'counts what was used before the clock was set back by %i ms, for an hour from then',
    async (backMs) => {
      const clock = sleepingClock();
      const { state } = await openTestState();
      expect(await takeAll(paceOn(state, clock, { maxWaitMs: 0 }))).toBe(100);
      clock.advance(-backMs);
      expect(await takeAll(paceOn(state, clock, { maxWaitMs: 0 }))).toBe(0);
      clock.advance(62 * MINUTE_MS);
      expect(await takeAll(paceOn(state, clock, { maxWaitMs: 0 }))).toBe(100);
    },
  );

  test('that is used up ends with a PausedError that names the time', async () => {
    const { clock, pace } = await openPace({ maxWaitMs: 2 * MINUTE_MS });
    const start = clock.now();
    expect(await takeAll(pace)).toBe(100);
    const error = await errorOf(pace.next());
    expect(error.message).toBe(
      `history.requestsPerHour reached: 100 of 100 used. The next request can be sent on ${nextMinute(freeAt(start))}.`,
    );
    expect(error).toMatchObject({ exitCode: 75 });
    clock.advance(freeAt(start).getTime() - start.getTime() - 2 * MINUTE_MS);
    await pace.next();
    expect(clock.now()).toEqual(freeAt(start));
  });
});

test('without a cap, nothing waits, and those of a second are counted in one commit', async () => {
  const { clock, state, pace } = await openPace({ cap: 'unlimited', maxWaitMs: 0 });
  for (let sent = 0; sent < 250; sent++) await pace.next();
  expect(usedIn(state, clock)).toBe(1);
  clock.advance(1_000);
  await pace.next();
  expect(usedIn(state, clock)).toBe(251);
  await pace.next();
  await pace.record();
  expect(usedIn(state, clock)).toBe(252);
});

describe('a refusal', () => {
  const at = sleepingClock().now();
  const uncapped = { cap: 'unlimited', maxWaitMs: 2 * MINUTE_MS } as const;

  test('is obeyed at once, by every request', async () => {
    const { clock, pace } = await openPace(uncapped);
    const refuse = (response: ServerResponse) =>
      reply(response, 429, { error: 'Too many requests' }, { 'retry-after': '1800' });
    const { client, server } = await clientOf(refuse, { now: clock.now, pace });
    for (let time = 0; time < 2; time++)
      expect(await pausedUntilOf(client.views(PAGE))).toEqual(addMinutes(at, 30));
    expect(server.seen).toHaveLength(1);
  });

  test('of one request, while others get their turn, is no reason to give up before each connection had it', async () => {
    const { clock, pace } = await openPace(uncapped);
    const refuse = (response: ServerResponse) => reply(response, 429, {}, { 'retry-after': '1' });
    const retries = { retries: 2, minDelayMs: 1, maxDelayMs: 1 };
    const { client, server } = await clientOf(refuse, { now: clock.now, pace, retries });
    await expect(client.views(PAGE)).rejects.toThrow('429');
    expect(server.seen).toHaveLength(1 + READS_AT_ONCE + retries.retries);
  });

  test('of a burst is waited out', async () => {
    const { clock, state, pace } = await openPace(uncapped);
    const { client, server } = await clientOf(
      (response, count) => {
        if (count === 1) reply(response, 429, { error: 'Slow down' }, { 'retry-after': '30' });
        else reply(response, 200, NO_ROWS);
      },
      { now: clock.now, pace },
    );
    await client.views(PAGE);
    expect(server.seen).toHaveLength(2);
    expect(clock.now()).toEqual(addSeconds(at, 30));
    await pace.record();
    expect(usedIn(state, clock)).toBe(2);
  });

  test('that names no wait pauses for seconds, then twice as long each time, an hour at most', async () => {
    const { clock, state } = await openPace();
    const pauses: number[] = [];
    for (let time = 0; time < 12; time++) {
      // Each in a process of its own.
      const pace = paceOn(state, clock, { cap: 'unlimited' });
      const before = clock.now();
      const request = await pace.next();
      if (time > 0) pauses.push(differenceInSeconds(clock.now(), before));
      await pace.refused(request, undefined);
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
    const pace = paceOn(state, clock, { cap: 'unlimited' });
    await pace.answered(await pace.next());
    await pace.refused(await pace.next(), undefined);
    expect(await pausedUntilOf(paceOn(state, clock, { maxWaitMs: 0 }).next())).toEqual(
      addSeconds(clock.now(), 5),
    );
  });

  test('is over once a trial is answered, which is sent in spite of it', async () => {
    const { clock, state, pace } = await openPace({ cap: 'unlimited', maxWaitMs: 0 });
    const { client, server } = await clientOf(
      (response, count) => {
        if (count < 3) reply(response, 429, { error: 'Too many requests' }, { 'retry-after': '3600' });
        else reply(response, 200, NO_ROWS);
      },
      { now: clock.now, pace },
    );
    const error = await errorOf(client.views(PAGE));
    expect(error.message).toMatch(
      /^The platform refused a request.+ To ask it again now: readership doctor$/,
    );
    // Sent once, and refused once more.
    await expect(client.views(PAGE, { isTrial: true })).rejects.toThrow(PausedError);
    await expect(client.views(PAGE)).rejects.toThrow(PausedError);
    expect(server.seen).toHaveLength(2);
    await client.views(PAGE, { isTrial: true });
    await client.views(PAGE);
    expect(server.seen).toHaveLength(4);
    await paceOn(state, clock, { maxWaitMs: 0 }).next();
    // Only a refusal is a reason to send more than the cap allows.
    const capped = paceOn(state, clock, { cap: 1, maxWaitMs: 0 });
    await expect(capped.next(undefined, true)).rejects.toThrow(
      'history.requestsPerHour reached: 4 of 1 used.',
    );
  });

  test('of several requests in flight counts once, an answer to one of them does not end it, and the longest wait applies', async () => {
    const { clock, pace } = await openPace({ cap: 'unlimited', maxWaitMs: 0 });
    const requests = [await pace.next(), await pace.next(), await pace.next()] as const;
    for (const request of requests) await pace.refused(request, undefined);
    await pace.answered(requests[1]);
    expect(await pausedUntilOf(pace.next())).toEqual(addSeconds(clock.now(), 5));
    await Promise.all([
      pace.refused(requests[0], 50 * MINUTE_MS),
      pace.refused(requests[1], 1_000),
      pace.refused(requests[2], undefined),
    ]);
    expect(await pausedUntilOf(pace.next())).toEqual(addMinutes(at, 50));
  });

  test.each([undefined, 30_000])(
    'after which requests were accepted is not one with the next; named wait: %s',
    async (wait) => {
      const { clock, state, pace } = await openPace(uncapped);
      const begun = clock.now();
      // Each time, all but one of the requests that follow the first are refused.
      for (let time = 0; time < 20; time++) {
        const first = await pace.next();
        await pace.answered(first);
        pace.ended(first);
        const [accepted, ...refused] = [await pace.next(), await pace.next(), await pace.next()];
        for (const request of refused) await pace.refused(request, wait);
        await pace.answered(accepted);
      }
      const { refusals, limit } = readRequests(state, BUCKET, clock.now());
      expect(differenceInSeconds(clock.now(), begun)).toBe(19 * (wait === undefined ? 5 : 30));
      expect(refusals).toMatchObject({ since: clock.now(), at: clock.now() });
      expect(limit).toBeUndefined();
    },
  );

  test('is asked about by one request when its pause is over; the others wait for its answer', async () => {
    const { clock, pace } = await openPace({ cap: 'unlimited' });
    const begun = clock.now();
    await pace.refused(await pace.next(), undefined);
    const sent: number[] = [];
    const waiting = Array.from({ length: 16 }, () =>
      pace.next().then((request) => {
        sent.push(request);
        return request;
      }),
    );
    const asking = async (place: number) => {
      await vi.waitUntil(() => sent.length > place, { timeout: 10_000, interval: 1 });
      expect(sent).toHaveLength(place + 1);
      return sent[place] ?? 0;
    };
    // It is refused once more, then lost, then accepted.
    const refused = await asking(0);
    await pace.refused(refused, 30_000);
    pace.ended(refused);
    pace.ended(await asking(1));
    const accepted = await asking(2);
    expect(differenceInSeconds(clock.now(), begun)).toBe(5 + 30);
    await pace.answered(accepted);
    pace.ended(accepted);
    expect(await Promise.all(waiting)).toHaveLength(16);
  });
});

test.each([
  ['a cap', 1, undefined, 'history.requestsPerHour reached: 1 of 1 used.'],
  ['a refusal', 'unlimited', 2_000, 'The platform refused a request, because of its own limit.'],
  [
    'a refusal that names no wait',
    'unlimited',
    0,
    'The platform refused a request, because of its own limit.',
  ],
] as const)('after %s, it is said until when everyone waits, and why', async (_, cap, refusedMs, why) => {
  const told: unknown[] = [];
  const { clock, pace } = await openPace({ cap, onWait: (...words) => told.push(words) });
  const start = clock.now();
  const request = await pace.next();
  if (refusedMs !== undefined) await pace.refused(request, refusedMs || undefined);
  await pace.next();
  const until = refusedMs === undefined ? freeAt(start) : addSeconds(start, (refusedMs || 5_000) / 1_000);
  expect(told).toEqual([[until, why]]);
  expect(clock.now()).toEqual(until);
});

test('waiting ends with the reason for an interruption', async () => {
  const clock = sleepingClock();
  const interruption = new AbortController();
  const sleep = (ms: number, signal?: AbortSignal) => {
    interruption.abort(new Error('interrupted by SIGTERM'));
    return clock.sleep(ms, signal);
  };
  const pace = paceOn((await openTestState()).state, clock, { cap: 1, sleep });
  await pace.next();
  const error = await errorOf(pace.next(interruption.signal));
  expect(error.message).toBe('interrupted by SIGTERM');
});
