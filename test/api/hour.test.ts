import { addMilliseconds, addMinutes, addSeconds } from 'date-fns';
import { describe, expect, test } from 'vitest';
import { freeAt, RollingHour } from '../../src/api/hour.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const minutesAgo = (minutes: number) => addMinutes(NOW, -minutes);
const sent = (at: Date, requests: number) => ({ at, requests });
const hourOf = (...uses: ReturnType<typeof sent>[]) => new RollingHour(uses, NOW);

describe('what counts', () => {
  test('a request counts for an hour after the last moment at which it can arrive', () => {
    const hour = hourOf(sent(NOW, 10));
    expect(hour.used(addMilliseconds(freeAt(NOW), -1))).toBe(10);
    expect(hour.used(freeAt(NOW))).toBe(0);
  });

  test('what is sent within a minute becomes free together, and never before an hour has passed', () => {
    for (let seconds = 0; seconds < 120; seconds++) {
      const usedAt = addSeconds(NOW, seconds);
      const countsForMs = freeAt(usedAt).getTime() - usedAt.getTime();
      expect(freeAt(usedAt).getTime() % 60_000).toBe(0);
      expect(countsForMs).toBeGreaterThanOrEqual(60 * 60_000 + 30_000);
      expect(countsForMs).toBeLessThan(62 * 60_000);
    }
  });

  test('a clock set back by minutes frees nothing: requests dated in the future count as if they were new', () => {
    const hour = hourOf(sent(addMinutes(NOW, 20), 10));
    expect(hour.used(NOW)).toBe(10);
    expect(hour.nextFreeAt(10, NOW)).toEqual(freeAt(NOW));
    // Even if nothing asks before an hour has passed.
    expect(hourOf(sent(addMinutes(NOW, 20), 10)).used(freeAt(NOW))).toBe(0);
  });

  test('requests dated exactly an hour ahead still count, later ones do not', () => {
    expect(hourOf(sent(addMinutes(NOW, 60), 10)).used(NOW)).toBe(10);
    expect(hourOf(sent(addMilliseconds(addMinutes(NOW, 60), 1), 10)).used(NOW)).toBe(0);
  });

  test('a clock that was days ahead does not stop the export for days', () => {
    const ahead = addMinutes(NOW, 3 * 24 * 60);
    expect(hourOf(sent(ahead, 100)).used(NOW)).toBe(0);
  });

  test('a clock set back by days during an export makes nothing count for longer than an hour', () => {
    const hour = hourOf(sent(minutesAgo(1), 10), sent(minutesAgo(10), 5));
    const back = minutesAgo(3 * 24 * 60);
    expect(hour.used(back)).toBe(15);
    expect(hour.used(freeAt(back))).toBe(0);
  });

  test('the longest of several pauses applies, and one that is over does not', () => {
    const hour = hourOf();
    for (const until of [addMinutes(NOW, 5), addMinutes(NOW, 30), minutesAgo(1)]) hour.pause(NOW, until);
    expect(hour.pausedUntil(NOW)).toEqual(addMinutes(NOW, 30));
    expect(hour.pausedUntil(addMinutes(NOW, 30))).toBeUndefined();
  });
});

describe('the next free request', () => {
  const rows = [sent(minutesAgo(50), 60), sent(minutesAgo(10), 40)];
  const hour = hourOf(...rows);

  test('is free at once while there is room', () => {
    expect(hour.nextFreeAt(101, NOW)).toEqual(NOW);
  });

  test('waits for the earliest request that makes room, in any order of the records', () => {
    const turned = hourOf(...[...rows].reverse());
    expect(turned.nextFreeAt(100, NOW)).toEqual(freeAt(minutesAgo(50)));
    expect(turned.nextFreeAt(40, NOW)).toEqual(freeAt(minutesAgo(10)));
  });

  test('waits longer if the limit was lowered below what is used', () => {
    const free = freeAt(minutesAgo(10));
    expect(hour.nextFreeAt(30, NOW)).toEqual(free);
  });
});
