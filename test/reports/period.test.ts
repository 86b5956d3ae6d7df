import { describe, expect, test } from 'vitest';
import { addDays, day, type Day } from '../../src/day.js';
import { ConfigurationError } from '../../src/errors.js';
import { lastEndedWeek, parseWeek, weekOf } from '../../src/reports/period.js';

/** ISO 8601 by its definition, without the library: the week's year is its Thursday's, and 4 January is in week 1. */
function isoWeekByHand(of: Day): string {
  const instant = Date.parse(of);
  const monday = instant - ((new Date(instant).getUTCDay() + 6) % 7) * 864e5;
  const year = new Date(monday + 3 * 864e5).getUTCFullYear();
  const fourth = Date.UTC(year, 0, 4);
  const firstMonday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * 864e5;
  return `${year}-W${String((monday - firstMonday) / (7 * 864e5) + 1).padStart(2, '0')}`;
}

describe('weeks', () => {
  test('agree with a second way of computing for every day of forty years', () => {
    for (let at = day('2000-01-01'); at < '2040-01-01'; at = addDays(at, 1)) {
      const week = weekOf(at);
      expect(week.name).toBe(isoWeekByHand(at));
      expect(week.name.endsWith(`W${String(week.week).padStart(2, '0')}`)).toBe(true);
      expect(week.first <= at && at <= week.last).toBe(true);
      expect(addDays(week.first, 6)).toBe(week.last);
    }
  });

  test.each([
    ['2026-W46', '2026-11-09', '2026-11-15'],
    ['2026-11-12', '2026-11-09', '2026-11-15'],
    ['2026-W53', '2026-12-28', '2027-01-03'],
    ['2027-01-01', '2026-12-28', '2027-01-03'],
    ['2025-W01', '2024-12-30', '2025-01-05'],
  ])('%s is %s to %s', (text, first, last) => {
    expect(parseWeek(text)).toMatchObject({ first, last });
  });

  test.each(['2027-W53', '2026-W00', '2026-W54', '2026-W4', '2026-11', '2026-02-30', 'last week', ''])(
    '“%s” is refused with what to give instead',
    (text) => {
      expect(() => parseWeek(text)).toThrow(ConfigurationError);
      expect(() => parseWeek(text)).toThrow(/such as 2026-W46/);
    },
  );

  test.each([
    ['2026-11-15T23:59:59Z', '2026-W45'],
    ['2026-11-16T00:00:00Z', '2026-W46'],
    ['2026-11-22T12:00:00Z', '2026-W46'],
    ['2027-01-04T00:00:00Z', '2026-W53'],
  ])('the last week that has ended at %s is %s', (now, name) => {
    expect(lastEndedWeek(new Date(now)).name).toBe(name);
  });
});
