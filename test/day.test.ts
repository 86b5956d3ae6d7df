import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  addDays,
  day,
  daysBetween,
  daysIn,
  dayOf,
  lastEndedDay,
  parseDay,
  rangeOf,
  startOfDay,
} from '../src/day.js';
import { tries } from './fuzz.js';

const DAY_MS = 86_400_000;

describe('a day', () => {
  it.each(['2024-02-29', '2000-02-29'])('may be %s', (text) => {
    expect(day(text)).toBe(text);
  });

  it.each([
    '2026-02-29',
    '1900-02-29',
    '2100-02-29',
    '2026-13-01',
    '2026-1-1',
    '26-01-01',
    '20260101',
    '2026-01-01T00:00:00Z',
    ' 2026-01-01',
    '2026-01-01\n',
    'yesterday',
    '',
  ])('is never %j', (text) => {
    expect(parseDay(text)).toBeUndefined();
    expect(() => day(text)).toThrow(RangeError);
  });
});

describe('a range of days', () => {
  it('goes from the first to the last of some days, of which there must be one', () => {
    const [first, middle, last] = [day('2026-02-27'), day('2026-02-28'), day('2026-03-01')];
    expect(rangeOf([first, middle, last])).toEqual({ first, last });
    expect(rangeOf([first])).toEqual({ first, last: first });
    expect(() => rangeOf([])).toThrow(RangeError);
  });
});

describe('days and instants', () => {
  it.each(['UTC', 'America/Los_Angeles', 'Pacific/Kiritimati', 'Europe/Berlin'])(
    'are UTC on a machine in %s',
    (machineZone) => {
      vi.stubEnv('TZ', machineZone);
      expect(dayOf(new Date('2026-11-18T00:00:00Z'))).toBe('2026-11-18');
      expect(dayOf(new Date('2026-11-18T23:59:59.999Z'))).toBe('2026-11-18');
      expect(startOfDay(day('2026-03-29')).toISOString()).toBe('2026-03-29T00:00:00.000Z');
      // Summer time begins and ends in some of these zones on these nights.
      expect(addDays(day('2026-03-28'), 2)).toBe('2026-03-30');
      expect(daysBetween(day('2026-10-24'), day('2026-10-26'))).toBe(2);
      expect(parseDay('2026-03-29')).toBe('2026-03-29');
    },
  );
});

describe('days, compared with a calendar of whole numbers that uses no library and no Date', () => {
  const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const monthLengths = (year: number) => [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

  /** Days since the end of the year 0. */
  function numberOf(text: string): number {
    const [year = 0, month = 0, date = 0] = text.split('-').map(Number);
    const before = year - 1;
    const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400);
    return before * 365 + leapDays + sum(monthLengths(year).slice(0, month - 1)) + date;
  }
  const exists = (year: number, month: number, date: number) =>
    date >= 1 && date <= (monthLengths(year)[month - 1] ?? 0);
  const written = (year: number, month: number, date: number) =>
    [String(year).padStart(4, '0'), ...[month, date].map((part) => String(part).padStart(2, '0'))].join('-');

  const EPOCH = numberOf('1970-01-01');
  const DAYS_OF_FOUR_CENTURIES = 146_097;
  const parts = fc.tuple(fc.integer({ min: 1, max: 9_990 }), fc.integer({ min: 0, max: 13 }), fc.nat(32));
  const anyDay = parts.filter((all) => exists(...all)).map((all) => day(written(...all)));

  it('are exactly those that exist', () => {
    const property = fc.property(parts, (all) => {
      const text = written(...all);
      const isDay = exists(...all);
      expect(parseDay(text)).toBe(isDay ? text : undefined);
      if (isDay) expect(day(text)).toBe(text);
      else expect(() => day(text)).toThrow(RangeError);
    });
    fc.assert(property, tries(2_000));
  });

  it('are as far apart as their numbers, and adding that distance to one gives the other', () => {
    const property = fc.property(anyDay, anyDay, (from, to) => {
      const distance = numberOf(to) - numberOf(from);
      expect(daysBetween(from, to)).toBe(distance);
      expect(addDays(from, distance)).toBe(to);
      expect(from < to).toBe(distance > 0);
    });
    fc.assert(property, tries(1_000));
  });

  it('of a range are as many as its length, consecutive, and none twice', () => {
    const property = fc.property(anyDay, fc.integer({ min: -5, max: 800 }), (first, length) => {
      const numbers = daysIn({ first, last: addDays(first, length - 1) }).map(numberOf);
      expect(numbers).toEqual(
        Array.from({ length: Math.max(0, length) }, (_, index) => numberOf(first) + index),
      );
    });
    fc.assert(property, tries(100));
  });

  it('begin at midnight UTC, and last 86,400,000 milliseconds', () => {
    const property = fc.property(fc.nat(3 * DAYS_OF_FOUR_CENTURIES), fc.nat(DAY_MS - 1), (days, withinMs) => {
      const instant = new Date(days * DAY_MS + withinMs);
      expect(numberOf(dayOf(instant))).toBe(EPOCH + days);
      expect(startOfDay(dayOf(instant)).getTime()).toBe(days * DAY_MS);
      expect(numberOf(lastEndedDay(instant))).toBe(EPOCH + days - 1);
    });
    fc.assert(property, tries(1_000));
  });
});
