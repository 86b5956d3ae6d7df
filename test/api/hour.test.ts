import { addHours, addMilliseconds, addMinutes, addSeconds, differenceInMinutes } from 'date-fns';
import { describe, expect, test } from 'vitest';
import { freeAt, LEASE_LIFE_MS, type RecordedUse, RollingHour } from '../../src/api/hour.js';
import { randomOf } from '../reports/random.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const minutesAgo = (minutes: number) => addMinutes(NOW, -minutes);
const lease = (usedAt: Date, requests: number): RecordedUse => ({
  used_at: usedAt,
  requests,
  paused_until: null,
  is_refusal: false,
});
const pause = (until: Date): RecordedUse => ({
  used_at: NOW,
  requests: 0,
  paused_until: until,
  is_refusal: true,
});
const hourOf = (...rows: RecordedUse[]) => new RollingHour(rows, NOW);

describe('what counts', () => {
  test('a lease counts for an hour after the last moment at which one of its requests can arrive', () => {
    const sentLast = addMilliseconds(NOW, LEASE_LIFE_MS);
    expect(freeAt(NOW).getTime()).toBeGreaterThan(addMinutes(sentLast, 60).getTime());
    const hour = hourOf(lease(NOW, 10));
    expect(hour.used(addMilliseconds(freeAt(NOW), -1))).toBe(10);
    expect(hour.used(freeAt(NOW))).toBe(0);
  });

  test('what is sent within a minute becomes free together, and never before an hour has passed', () => {
    for (let seconds = 0; seconds < 120; seconds++) {
      const usedAt = addSeconds(NOW, seconds);
      const countsForMs = freeAt(usedAt).getTime() - usedAt.getTime();
      expect(freeAt(usedAt).getTime() % 60_000).toBe(0);
      expect(countsForMs).toBeGreaterThanOrEqual(60 * 60_000 + LEASE_LIFE_MS + 10_000);
      expect(countsForMs).toBeLessThan(62 * 60_000);
    }
  });

  test('a clock set back by minutes frees nothing: requests dated in the future count as if they were new', () => {
    const hour = hourOf(lease(addMinutes(NOW, 20), 10));
    expect(hour.used(NOW)).toBe(10);
    expect(hour.nextFreeAt(10, 1, NOW)).toEqual(freeAt(NOW));
    // Even if nothing asks before an hour has passed.
    expect(hourOf(lease(addMinutes(NOW, 20), 10)).used(freeAt(NOW))).toBe(0);
  });

  test('requests dated exactly an hour ahead still count, later ones do not', () => {
    expect(hourOf(lease(addMinutes(NOW, 60), 10)).used(NOW)).toBe(10);
    expect(hourOf(lease(addMilliseconds(addMinutes(NOW, 60), 1), 10)).used(NOW)).toBe(0);
  });

  test('a clock that was days ahead does not stop the export for days', () => {
    const ahead = addMinutes(NOW, 3 * 24 * 60);
    const hour = hourOf(lease(ahead, 100), { ...pause(addMinutes(ahead, 60)), used_at: ahead });
    expect(hour.used(NOW)).toBe(0);
    expect(hour.pausedUntil(NOW)).toBeUndefined();
  });

  test('a clock set back by days during an export makes nothing count for longer than an hour', () => {
    const hour = hourOf(lease(minutesAgo(1), 10), lease(minutesAgo(10), 5));
    const back = minutesAgo(3 * 24 * 60);
    expect(hour.used(back)).toBe(15);
    expect(hour.used(freeAt(back))).toBe(0);
  });

  test('returned requests no longer count', () => {
    const hour = hourOf(lease(minutesAgo(1), 10));
    hour.add(-4, minutesAgo(1));
    expect(hour.used(NOW)).toBe(6);
  });

  test('the longest of several pauses applies, and one that is over does not', () => {
    const hour = hourOf(pause(addMinutes(NOW, 5)), pause(addMinutes(NOW, 30)), pause(minutesAgo(1)));
    expect(hour.pausedUntil(NOW)).toEqual(addMinutes(NOW, 30));
    expect(hour.pausedUntil(addMinutes(NOW, 30))).toBeUndefined();
  });
});

describe('the next free request', () => {
  const rows = [lease(minutesAgo(50), 60), lease(minutesAgo(10), 40)];
  const hour = hourOf(...rows);

  test('is free at once while there is room', () => {
    expect(hour.nextFreeAt(101, 1, NOW)).toEqual(NOW);
  });

  test('waits for the earliest lease that makes enough room, in any order of the ledger', () => {
    const turned = hourOf(...[...rows].reverse());
    expect(turned.nextFreeAt(100, 1, NOW)).toEqual(freeAt(minutesAgo(50)));
    expect(turned.nextFreeAt(100, 60, NOW)).toEqual(freeAt(minutesAgo(50)));
    expect(turned.nextFreeAt(100, 61, NOW)).toEqual(freeAt(minutesAgo(10)));
  });

  test('waits longer if the limit was lowered below what is used', () => {
    const free = freeAt(minutesAgo(10));
    expect(hour.nextFreeAt(30, 1, NOW)).toEqual(free);
    expect(hour.finishingAt(30, 30, NOW)).toEqual(free);
    expect(hour.finishingAt(30, 31, NOW)).toEqual(addHours(free, 1));
  });

  test('waits for the end of a pause that lasts longer', () => {
    const until = addMinutes(NOW, 59);
    expect(hourOf(...rows, pause(until)).nextFreeAt(100, 1, NOW)).toEqual(until);
  });
});

/** Sends one request at a time, each as early as the rolling hour allows. */
function simulate(rows: readonly RecordedUse[], limit: number, requests: number): Date {
  const frees = rows.flatMap((row) =>
    Array.from({ length: row.requests }, () => freeAt(row.used_at).getTime()),
  );
  let at = Math.max(NOW.getTime(), ...rows.map((row) => row.paused_until?.getTime() ?? 0));
  for (let sent = 0; sent < requests; sent++) {
    const counted = () => frees.filter((free) => free > at);
    while (counted().length >= limit) at = Math.min(...counted());
    frees.push(freeAt(new Date(at)).getTime());
  }
  return new Date(at);
}

test('the finishing time is about that of sending each request as early as allowed, for any ledger', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = randomOf(seed);
    const below = (bound: number) => Math.floor(random() * bound);
    const rows = Array.from({ length: below(6) }, () => lease(minutesAgo(below(70)), below(15)));
    if (random() < 0.3) rows.push(pause(addMinutes(NOW, below(60))));
    const limit = 1 + below(30);
    const requests = below(80);
    const said = hourOf(...rows).finishingAt(limit, requests, NOW);
    const takes = differenceInMinutes(simulate(rows, limit, requests), NOW);
    // Requests count for 61 minutes, and those of the last hour do not end at once.
    const error = Math.abs(differenceInMinutes(said, NOW) - takes);
    expect(error, `seed ${seed}`).toBeLessThanOrEqual(61 + takes / 60);
  }
});
