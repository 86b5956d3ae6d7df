import { describe, expect, it } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { compareWeeks, type History } from '../../src/reports/weekly/comparison.js';

const FIRST = day('2026-11-16');
const weekOf = (ago: number, days_loaded = 7) => ({
  week: addDays(FIRST, -7 * ago),
  ...{ human: 700, ai: 70, ai_share: 0.1, days_loaded },
});
const breakAt = (ago: number) => ({
  day: addDays(FIRST, -ago),
  text: 'new tracker',
  path: '*',
  is_break: true,
});

/** The week from `FIRST` on, compared with the weeks given. */
const compared = (weeks: History['weeks'], changes: Partial<History> = {}) =>
  compareWeeks(
    {
      ...{ weeks, daily_views: [], usual: [], causes: [], notes: [] },
      ...{ historySince: day('2026-01-01'), ...changes },
    },
    FIRST,
  ) ?? expect.fail('not loaded');

describe('a week', () => {
  it('is compared only if all of its days and all of those of the week before are loaded', () => {
    expect(compared([weekOf(1), weekOf(0)]).before).toEqual(weekOf(1));
    expect(compared([weekOf(1), weekOf(0, 6)]).before).toBeNull();
    expect(compared([weekOf(1, 6), weekOf(0)])).toMatchObject({
      before: null,
      weekBefore: weekOf(1, 6),
      earlier: [],
    });
    expect(compared([weekOf(2), weekOf(0)])).toMatchObject({ before: null, weekBefore: null });
  });

  it('is typical of those before it only as far as none is missing', () => {
    const { earlier, typical } = compared([4, 3, 1, 0].map((ago) => weekOf(ago)));
    expect(earlier.map(({ week }) => week)).toEqual([1, 3, 4].map((ago) => addDays(FIRST, -7 * ago)));
    expect(typical.map(({ week }) => week)).toEqual([FIRST, addDays(FIRST, -7)]);
  });

  it('is not compared across a break, from the day after the earlier week began to its own last day', () => {
    const weeks = [2, 1, 0].map((ago) => weekOf(ago));
    const isBroken = (ago: number) => compared(weeks, { notes: [breakAt(ago)] }).broken !== null;
    expect([8, 7, 6, 0, -6, -7].map(isBroken)).toEqual([false, false, true, true, true, false]);
    // The weeks from the break on are still typical.
    expect(compared(weeks, { notes: [breakAt(7)] }).typical).toHaveLength(2);
    expect(compared(weeks, { notes: [breakAt(7)] }).earlier).toHaveLength(1);
    expect(compared(weeks, { notes: [breakAt(6)] }).earlier).toEqual([]);
    expect(compared(weeks, { notes: [{ ...breakAt(3), path: '/docs/*' }] }).broken).toBeNull();
    expect(compared(weeks, { notes: [{ ...breakAt(3), is_break: false }] }).broken).toBeNull();
  });

  it.each([
    [
      { low: 200, high: 800 },
      { low: 200, high: 800, weeks: 8 },
    ],
    [{ low: 200, high: 801 }, { why: 'varies too much to say what is usual' }],
    [{ low: 100, high: 499 }, { why: 'too few views to say what is usual' }],
    [{ low: 100, high: 500 }, { why: 'varies too much to say what is usual' }],
    [{ low: null, high: null }, null],
  ])('with the range %j is expected in %j', (range, usual) => {
    const row = {
      ...{
        week: FIRST,
        audience: 'human' as const,
        expected: 600,
        weeks_used: 8,
        weeks: 20,
        is_record: false,
      },
      ...range,
    };
    expect(compared([weekOf(0)], { usual: [row] }).human.usual).toEqual(usual);
  });

  it.each([
    [700, 800, 'inside'],
    [701, 800, 'below'],
    [600, 700, 'inside'],
    [600, 699, 'above'],
  ])('of 700 views is, in a range from %i to %i, %s', (low, high, place) => {
    const row = {
      ...{
        week: FIRST,
        audience: 'human' as const,
        expected: 700,
        weeks_used: 8,
        weeks: 20,
        is_record: true,
      },
      ...{ low, high },
    };
    expect(compared([weekOf(0)], { usual: [row] }).human).toMatchObject({ place, record: 20 });
  });
});
