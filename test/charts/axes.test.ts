import { describe, expect, test } from 'vitest';
import { dateLabels, isCut, valueAxis } from '../../src/charts/axes.js';
import { addDays, day } from '../../src/day.js';

describe('an axis of days', () => {
  const pointsFrom = (first: string, step: number, count: number) =>
    Array.from({ length: count }, (_, index) => {
      const at = addDays(day(first), step * index);
      return { first: at, last: addDays(at, step - 1) };
    });

  test.each([
    ['2026-11-09', 1, 5, 'Nov 9, Nov 10, Nov 11, Nov 12, Nov 13'],
    ['2026-11-09', 1, 13, 'Nov 9, Nov 11, Nov 13, Nov 15, Nov 17, Nov 19, Nov 21'],
    ['2026-10-15', 1, 28, 'Oct 19, Oct 26, Nov 2, Nov 9'],
    ['2026-08-17', 1, 91, 'Aug 17, Aug 31, Sep 14, Sep 28, Oct 12, Oct 26, Nov 9'],
    ['2026-10-19', 7, 26, 'Nov, Dec, 2027, Feb, Mar, Apr'],
    ['2025-11-10', 7, 52, '2026, Mar, May, Jul, Sep, Nov'],
    ['2022-01-01', 1, 1826, '2022, 2023, 2024, 2025, 2026'],
    ['2010-03-05', 30, 200, '2015, 2020, 2025'],
  ])('from %s, every %i days, %i times, is labeled %s', (first, step, count, dates) => {
    const labels = dateLabels(pointsFrom(first, step, count), 7);
    expect(labels.map(({ label }) => label).join(', ')).toBe(dates);
  });

  test('is labeled where its own weeks begin, back from the last', () => {
    const labels = dateLabels(pointsFrom('2026-08-19', 1, 91), 7, day('2026-11-11'));
    expect(labels.map(({ label }) => label)).toContain('Nov 11');
    expect(labels.map(({ index }) => index % 14)).toEqual(labels.map(() => 0));
  });

  test('of months names months and years', () => {
    const months = ['2025-11', '2025-12', '2026-01', '2026-02'].map((month) => ({
      first: day(`${month}-01`),
      last: day(`${month}-28`),
    }));
    expect(dateLabels(months, 7).map(({ label }) => label)).toEqual(['Nov', 'Dec', '2026', 'Feb']);
  });
});

describe('an axis of values', () => {
  const plot = { left: 0, right: 100, top: 0, bottom: 100 };
  const ticksOf = (values: readonly number[]) => valueAxis([values], Math.max(...values, 0), plot).ticks;

  test('has a few round numbers, the first and the last at its ends', () => {
    expect(ticksOf([4350, 120])).toEqual([0, 1000, 2000, 3000, 4000, 5000]);
    const { yOf } = valueAxis([[4350]], 4350, plot);
    expect([0, 5000, 9000].map(yOf)).toEqual([100, 0, 0]);
  });

  test('has no fractions of a view, and some of a ratio', () => {
    expect(ticksOf([0, 1])).toEqual([0, 1]);
    expect(ticksOf([0])).toEqual([0, 1]);
    expect(ticksOf([0.25])).toContain(0.1);
  });

  test('goes below zero where values do', () => {
    const ticks = ticksOf([-30, 70]);
    expect(ticks[0]).toBeLessThan(-29);
    expect(ticks).toContain(0);
  });

  test('ends below a few values that are far above all others', () => {
    const usual = Array.from({ length: 90 }, () => 100);
    expect([isCut([usual]), isCut([[...usual, 399]]), isCut([[...usual, 401]])]).toEqual([
      false,
      false,
      true,
    ]);
    // One of ten values is few.
    expect(isCut([[...usual.slice(0, 9), 401]])).toBe(true);
    // A lasting change is no exception.
    expect(isCut([[...usual, ...usual.map(() => 900)]])).toBe(false);
  });
});
