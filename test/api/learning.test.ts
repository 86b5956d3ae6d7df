import { addHours, differenceInMilliseconds, startOfHour } from 'date-fns';
import { expect, test } from 'vitest';
import { PausedError } from '../../src/api/errors.js';
import { readRequests, requestsOf } from '../../src/state/platform.js';
import type { State } from '../../src/state/state.js';
import { openTestState } from '../open-state.js';
import { DAY_MS, MINUTE_MS, type SleepingClock, sleepingClock } from '../sleeping-clock.js';
import { BUCKET, paceOn, takeAll } from './open-pace.js';

const HOUR_MS = 60 * MINUTE_MS;

interface Limit {
  readonly requests: number;
  readonly ms: number;
  /** Whether the limit is for each hour of the clock, rather than for any hour. */
  readonly isFixed?: boolean;
}

/** A platform that accepts so many requests in a time, those of others included. */
function platformOf(clock: SleepingClock, { requests, ms, isFixed = false }: Limit) {
  const accepted: Date[] = [];
  const answer = (): number | undefined => {
    const now = clock.now();
    const since = isFixed ? startOfHour(now) : new Date(now.getTime() - ms + 1);
    const recent = accepted.filter((one) => one >= since);
    if (recent.length < requests) {
      accepted.push(now);
      return undefined;
    }
    const until = isFixed ? addHours(since, 1) : new Date((recent.at(-requests) ?? now).getTime() + ms);
    return Math.max(1_000, differenceInMilliseconds(until, now));
  };
  const othersUse = (count: number) => {
    for (let used = 0; used < count; used++) accepted.push(clock.now());
  };
  return { answer, othersUse };
}

interface World {
  readonly state: State;
  readonly clock: SleepingClock;
  readonly platform: ReturnType<typeof platformOf>;
  readonly saysWhen: boolean;
}

/** Sends requests in a new process, as the service does: it goes on after each pause. Returns how many were refused. */
async function send(count: number, { state, clock, platform, saysWhen }: World): Promise<number> {
  const pace = paceOn(state, clock, { cap: 'unlimited', maxWaitMs: DAY_MS });
  let refused = 0;
  for (let done = 0; done < count;) {
    const request = await pace.next();
    clock.advance(200);
    const waitMs = platform.answer();
    if (waitMs === undefined) {
      await pace.answered(request);
      done++;
    } else {
      refused++;
      await pace.refused(request, saysWhen ? waitMs : undefined);
    }
    pace.ended(request);
  }
  await pace.record();
  return refused;
}

async function setUp(limit: Limit, saysWhen: boolean) {
  const clock = sleepingClock();
  const { state } = await openTestState();
  const world = { state, clock, platform: platformOf(clock, limit), saysWhen };
  const learned = () => readRequests(state, BUCKET, clock.now()).limit;
  return { ...world, send: (count: number) => send(count, world), learned };
}

test.each([
  ['any hour, and says how long to wait,', true, false],
  ['each hour of the clock, and says how long to wait,', true, true],
  ['any hour, and does not say how long to wait,', false, false],
])('a platform that accepts 100 requests in %s refuses once in thirty days', async (_, saysWhen, isFixed) => {
  const { clock, send, learned } = await setUp({ requests: 100, ms: HOUR_MS, isFixed }, saysWhen);
  const start = clock.now().getTime();
  const toNight = (night: number) => {
    clock.advance(start + night * DAY_MS - clock.now().getTime());
  };
  // Without that, it is asked again after each pause.
  const refusals: unknown = saysWhen ? 1 : expect.any(Number);
  expect(await send(150)).toEqual(refusals);
  expect(learned()).toBe(100);
  for (const night of [1, 2, 9, 16, 29]) {
    toNight(night);
    expect(await send(150)).toBe(0);
  }
  // Plans change, so it is tried again then.
  toNight(31);
  expect(learned()).toBeUndefined();
  expect(await send(150)).toEqual(refusals);
  expect(learned()).toBe(100);
});

test.each([true, false])(
  'a platform of ten a minute teaches nothing (with Retry-After: %s)',
  async (saysWhen) => {
    const { clock, send, learned } = await setUp({ requests: 10, ms: MINUTE_MS }, saysWhen);
    for (let night = 0; night < 3; night++) {
      await send(60);
      expect(learned()).toBeUndefined();
      clock.advance(DAY_MS);
    }
  },
);

test('a refusal of each of two nights is not one long pause', async () => {
  const { clock, state } = await setUp({ requests: 10, ms: MINUTE_MS }, true);
  const night = async () => {
    const pace = paceOn(state, clock, { cap: 'unlimited', maxWaitMs: 0 });
    for (let sent = 0; sent < 10; sent++) await pace.answered(await pace.next());
    await pace.refused(await pace.next(), 30_000);
    await expect(pace.next()).rejects.toThrow(PausedError);
  };
  await night();
  clock.advance(DAY_MS);
  const pace = paceOn(state, clock, { cap: 'unlimited', maxWaitMs: DAY_MS });
  const asking = await pace.next();
  await pace.refused(asking, 30_000);
  pace.ended(asking);
  await pace.answered(await pace.next());
  expect(readRequests(state, BUCKET, clock.now()).limit).toBeUndefined();
});

test('a quota that others use too never lowers what was once accepted', async () => {
  const { clock, platform, send, learned } = await setUp({ requests: 100, ms: HOUR_MS }, true);
  await send(101);
  expect(learned()).toBe(100);
  clock.advance(5 * DAY_MS);
  platform.othersUse(90);
  expect(await send(30)).toBeGreaterThan(0);
  expect(learned()).toBe(100);
});

test('what a refusal taught holds for every process and project with the key, and no other', async () => {
  const { clock, state, send } = await setUp({ requests: 100, ms: HOUR_MS }, true);
  await send(101);
  clock.advance(2 * HOUR_MS);
  const first = paceOn(state, clock, { cap: 'unlimited', maxWaitMs: 0 });
  for (let sent = 0; sent < 60; sent++) await first.next();
  await first.record();
  const second = paceOn(state, clock, { cap: 'unlimited', maxWaitMs: 0 });
  for (let sent = 0; sent < 40; sent++) await second.next();
  await expect(second.next()).rejects.toThrow('The hourly limit of the platform reached: 100 of 100 used.');
  const other = paceOn(state, clock, { cap: 'unlimited', maxWaitMs: 0, bucket: 'another key' });
  for (let sent = 0; sent < 150; sent++) await other.next();
});

test.each([
  [10, 10],
  [80, 50],
])(
  'with a cap of %i by hand, and a limit of 50 that the platform taught, %i requests are sent',
  async (cap, sent) => {
    const clock = sleepingClock();
    const { state } = await openTestState();
    const now = clock.now();
    const requests = requestsOf(state, BUCKET);
    await requests.recordRefusal({ since: now, at: now, until: now });
    await requests.recordAccepted(50, now);
    expect(await takeAll(paceOn(state, clock, { cap, maxWaitMs: 0 }))).toBe(sent);
  },
);
