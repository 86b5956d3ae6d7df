import { describe, expect, test } from 'vitest';
import { addDays, day, WEEKDAYS, type Day } from '../../src/day.js';
import { ConfigurationError } from '../../src/errors.js';
import {
  type Calendar,
  choosePeriod,
  ISO_CALENDAR,
  lastEnded,
  type PeriodKind,
  periodOf,
  titleOf,
} from '../../src/reports/period.js';

const parsePeriod = (kind: PeriodKind, text: string, calendar: Calendar) =>
  choosePeriod(kind, text, new Date(), calendar);

/** ISO 8601 without the library: a week belongs to the year of its Thursday, and January 4 is in week 1. */
function isoWeekByHand(of: Day): string {
  const instant = Date.parse(of);
  const monday = instant - ((new Date(instant).getUTCDay() + 6) % 7) * 864e5;
  const year = new Date(monday + 3 * 864e5).getUTCFullYear();
  const fourth = Date.UTC(year, 0, 4);
  const firstMonday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * 864e5;
  return `${year}-W${String((monday - firstMonday) / (7 * 864e5) + 1).padStart(2, '0')}`;
}

describe('weeks', () => {
  test('agree with an independent calculation for every day of forty years', () => {
    for (let at = day('2000-01-01'); at < '2040-01-01'; at = addDays(at, 1)) {
      const week = periodOf('week', at, ISO_CALENDAR);
      expect(week.name).toBe(isoWeekByHand(at));
      expect(week.label).toBe(`Week ${Number(week.name.slice(-2))}`);
      expect(week.first <= at && at <= week.last).toBe(true);
      expect(addDays(week.first, 6)).toBe(week.last);
    }
  });

  test.each(WEEKDAYS)('that start on a %s follow each other, each with a unique name', (firstDayOfWeek) => {
    const calendar = { firstDayOfWeek, timezone: 'UTC' };
    const names = new Set<string>();
    let week = periodOf('week', day('2019-12-20'), calendar);
    for (let count = 0; count < 600; count += 1) {
      expect(WEEKDAYS[(new Date(week.first).getUTCDay() + 6) % 7]).toBe(firstDayOfWeek);
      expect(parsePeriod('week', week.name, calendar)).toEqual(week);
      expect(names.has(week.name)).toBe(false);
      names.add(week.name);
      const next = periodOf('week', addDays(week.last, 1), calendar);
      expect(next.first).toBe(addDays(week.last, 1));
      week = next;
    }
  });

  test.each([
    ['2026-W46', '2026-11-09', '2026-11-15'],
    ['2026-11-12', '2026-11-09', '2026-11-15'],
    ['2026-W53', '2026-12-28', '2027-01-03'],
    ['2027-01-01', '2026-12-28', '2027-01-03'],
    ['2025-W01', '2024-12-30', '2025-01-05'],
  ])('%s is %s to %s', (text, first, last) => {
    expect(parsePeriod('week', text, ISO_CALENDAR)).toMatchObject({ first, last });
  });

  test('that start on Sunday get the number of the ISO week that contains most of their days', () => {
    const week = parsePeriod('week', '2026-W53', { firstDayOfWeek: 'sunday', timezone: 'UTC' });
    expect(week).toMatchObject({ first: '2026-12-27', last: '2027-01-02', name: '2026-W53' });
  });

  const NO_WEEKS = '2027-W53 2026-W00 2026-W54 0000-W01 9999-W52 2026-W4 2026-11 2026-02-30';
  test.each([...NO_WEEKS.split(' '), 'last week', ''])('“%s” is rejected with an example', (text) => {
    expect(() => parsePeriod('week', text, ISO_CALENDAR)).toThrow(ConfigurationError);
    expect(() => parsePeriod('week', text, ISO_CALENDAR)).toThrow(/such as 2026-W46/);
  });

  test.each([
    ['2026-11-15T23:59:59Z', '2026-W45'],
    ['2026-11-16T00:00:00Z', '2026-W46'],
    ['2026-11-22T12:00:00Z', '2026-W46'],
    ['2027-01-04T00:00:00Z', '2026-W53'],
  ])('the last week that has ended at %s is %s', (now, name) => {
    expect(lastEnded('week', new Date(now), ISO_CALENDAR).name).toBe(name);
  });
});

describe('months and days', () => {
  test.each([
    ['month', '2026-11', '2026-11-01', '2026-11-30', 'November 2026'],
    ['month', '2028-02-29', '2028-02-01', '2028-02-29', 'February 2028'],
    ['month', '2026-12', '2026-12-01', '2026-12-31', 'December 2026'],
    ['day', '2026-11-12', '2026-11-12', '2026-11-12', 'Thu, Nov 12, 2026'],
  ] as const)('%s %s is %s to %s', (kind, text, first, last, title) => {
    const period = parsePeriod(kind, text, ISO_CALENDAR);
    expect(period).toMatchObject({ kind, first, last });
    expect(titleOf(period)).toBe(title);
  });

  test.each([
    ['month', '2026-13'],
    ['month', '2026-W46'],
    ['day', '2026-11'],
    ['day', '2026-02-30'],
  ] as const)('for a %s, “%s” is rejected', (kind, text) => {
    expect(() => parsePeriod(kind, text, ISO_CALENDAR)).toThrow(ConfigurationError);
  });

  test('end with the year', () => {
    const now = new Date('2027-01-01T00:00:00Z');
    expect(lastEnded('month', now, ISO_CALENDAR).name).toBe('2026-12');
    expect(lastEnded('day', now, ISO_CALENDAR).name).toBe('2026-12-31');
  });

  test('end only when they are over in both UTC and the configured time zone', () => {
    const calendar = { firstDayOfWeek: 'monday', timezone: 'America/Los_Angeles' } as const;
    expect(lastEnded('day', new Date('2026-11-16T07:59:00Z'), calendar).name).toBe('2026-11-14');
    expect(lastEnded('day', new Date('2026-11-16T08:00:00Z'), calendar).name).toBe('2026-11-15');
    const ahead = { firstDayOfWeek: 'monday', timezone: 'Asia/Tokyo' } as const;
    expect(lastEnded('day', new Date('2026-11-15T23:59:00Z'), ahead).name).toBe('2026-11-14');
  });
});
