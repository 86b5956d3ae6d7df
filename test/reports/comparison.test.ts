import { describe, expect, it } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { compareWeeks, type WeekRows } from '../../src/reports/weekly/comparison.js';

const FIRST = day('2026-11-16');
const weekOf = (ago: number, days_loaded = 7) => ({
  week: addDays(FIRST, -7 * ago),
  ...{ human: 700, ai: 70, ai_share: 0.1, days_loaded, outages: [] },
});
const breakAt = (ago: number) => ({ day: addDays(FIRST, -ago), text: 'x', path: '*', is_break: true });

const ROW = { week: FIRST, audience: 'human', weeks_used: 8, weeks: 20 } as const;
/** What is usual for people in that week. */
const usualOf = (range: { low: number | null; high: number | null }, changes = {}) => [
  { ...ROW, expected: 600, is_record: false, ...range, ...changes },
];

/** The week from `FIRST` on, compared with the weeks given. */
const compared = (weeks: WeekRows['weeks'], changes: Partial<WeekRows> = {}) =>
  compareWeeks({ weeks, daily_views: [], usual: [], causes: [], notes: [], ...changes }, FIRST) ??
  expect.fail('not loaded');

describe('a week', () => {
  it('is compared only if all of its days and all of those of the week before are loaded', () => {
    expect(compared([weekOf(1), weekOf(0)])).toMatchObject({ before: weekOf(1), human: { same: null } });
    expect(compared([weekOf(1), weekOf(0, 6)]).before).toBeNull();
    const incomplete = compared([weekOf(1, 6), weekOf(0)]);
    expect(incomplete).toMatchObject({ before: null, weekBefore: weekOf(1, 6), earlier: [] });
    expect(compared([weekOf(2), weekOf(0)])).toMatchObject({ before: null, weekBefore: null });
  });

  it('has the pages that changed most for each audience, if the site has more than one', () => {
    const human = { audience: 'human' as const, path: '/a', is_page: true, days: [] };
    const ai = { audience: 'ai' as const, path: '/b', is_page: true, days: [] };
    const causes = [human, ai];
    const week = compared([weekOf(0)], { causes });
    expect([week.human.causes, week.ai.causes]).toEqual([[human], [ai]]);
    const onePage = causes.map((cause) => ({ ...cause, path: '/' }));
    expect(compared([weekOf(0)], { causes: onePage }).ai.causes).toEqual([]);
  });

  it('is typical of those before it only as far as none is missing', () => {
    const { earlier, typical } = compared([4, 3, 1, 0].map((ago) => weekOf(ago)));
    expect(earlier.map(({ week }) => week)).toEqual([1, 3, 4].map((ago) => addDays(FIRST, -7 * ago)));
    expect(typical.map(({ week }) => week)).toEqual([FIRST, addDays(FIRST, -7)]);
    expect(compared([weekOf(2), weekOf(0)]).typical).toHaveLength(1);
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
      { usual: { low: 200, high: 800, weeks: 8 }, noUsual: null },
    ],
    [{ low: 200, high: 801 }, { noUsual: 'varies too much to say what is usual' }],
    [{ low: 100, high: 499 }, { noUsual: 'too few views to say what is usual' }],
    [{ low: 100, high: 500 }, { noUsual: 'varies too much to say what is usual' }],
    [{ low: null, high: null }, { noUsual: null }],
  ])('with the range %j is expected in %j', (range, usual) => {
    const given = { usual: usualOf(range) };
    expect(compared([weekOf(0)], given).human).toMatchObject({ usual: null, ...usual });
    expect(compared([weekOf(0, 6)], given).human.usual).toBeNull();
  });

  it.each([
    [700, 800, 'inside'],
    [701, 800, 'below'],
    [600, 700, 'inside'],
    [600, 699, 'above'],
  ])('of 700 views is, in a range from %i to %i, %s', (low, high, place) => {
    const usual = usualOf({ low, high }, { expected: 700, is_record: true });
    expect(compared([weekOf(0)], { usual }).human).toMatchObject({ place, record: 20 });
  });
});

describe('a burst', () => {
  /** People's views of five weeks or more, oldest first: the same on each weekday, but for some days before `FIRST`. */
  const site = (weekdays: readonly number[], changes: Record<number, number | null>, weeks = 5) => {
    const daily_views = Array.from({ length: 7 * weeks }, (_, index) => {
      const ago = 7 * (weeks - 1) - index;
      const { [ago]: human = weekdays[index % 7] ?? 0 } = changes;
      return { day: addDays(FIRST, -ago), human, ai: 10, is_outage: false };
    });
    const rows = Array.from({ length: weeks }, (_, week) => {
      const days = daily_views.slice(7 * week, 7 * week + 7);
      return { ...weekOf(weeks - 1 - week), human: days.reduce((sum, { human }) => sum + (human ?? 0), 0) };
    });
    return compared(rows, { daily_views });
  };
  const even = Array.from({ length: 7 }, () => 100);
  const humanOf = (...given: Parameters<typeof site>) => site(...given).human;
  const viewsOf = (...given: Parameters<typeof site>) => humanOf(...given).bursts[0]?.views ?? null;

  it('has more than three times the usual views', () => {
    expect(viewsOf(even, { 0: 300 })).toBeNull();
    expect(viewsOf(even, { 0: 301 })).toBe(301);
  });

  it('has a hundred views more than usual', () => {
    const few = even.map(() => 10);
    expect(viewsOf(few, { 0: 109 })).toBeNull();
    expect(viewsOf(few, { 0: 110 })).toBe(110);
  });

  it('has twelve times the median distance of days more than usual', () => {
    // Most days are 20 from the middle one.
    const uneven = [60, 80, 100, 120, 140, 100, 100];
    expect(viewsOf(uneven, { 0: 299 })).toBeNull();
    expect(viewsOf(uneven, { 0: 300 })).toBe(300);
  });

  it('is compared with the median of its weekday in the four weeks before and after', () => {
    const mondays = { 0: 700, 7: 300, 14: 100, 21: 100, 28: 300, 35: 9_000 };
    expect(humanOf([100, 150, 150, 150, 150, 150, 150], mondays, 6).bursts).toEqual([
      { audience: 'human', day: FIRST, views: 700, usual: 200, week: 5 },
    ]);
    expect(viewsOf(even, { 0: 900, 7: null, 14: null })).toBeNull();
    expect(viewsOf(even, { 0: 900, 7: null })).toBe(900);
  });

  it('is one of two days in its week at most', () => {
    expect([...humanOf(even, { 0: 900, [-1]: 900 }).leftOut]).toEqual([0, 1]);
    const three = humanOf(even, { 0: 900, [-1]: 900, [-2]: 900 });
    expect(three).toMatchObject({ bursts: [], leftOut: new Set() });
    // Each week has its own two.
    expect([...humanOf(even, { 8: 900, 7: 900, 0: 900 }).leftOut]).toEqual([0]);
  });

  it.each([
    ['this week', { [-6]: 900 }, { now: 600, before: 600, days: 6 }, [700, 700]],
    ['on its first day', { 0: 900 }, { now: 600, before: 600, days: 6 }, [700, 700]],
    ['the week before', { 7: 900 }, { now: 600, before: 600, days: 6 }, [700, 700]],
    ['two weeks before', { 8: 900 }, { now: 700, before: 700, days: 7 }, [700, 700]],
  ])('%s is left out of the comparison, of both weeks', (when, changes, same, typical) => {
    const week = site(even, changes);
    expect(week.human.same).toEqual(same);
    expect(week.typical.slice(0, 2).map(({ human }) => human)).toEqual(typical);
    expect(week.typical.map(({ ai }) => ai)).toEqual(week.typical.map(() => 70));
    const isNow = when === 'this week' || when === 'on its first day';
    expect(week.human.bursts).toHaveLength(isNow ? 1 : 0);
    expect(week.human.burstsBefore).toHaveLength(when === 'the week before' ? 1 : 0);
    expect(week.ai.leftOut.size).toBe(0);
  });

  it('makes neither a record nor a week above its usual range', () => {
    const usual = usualOf({ low: 700, high: 700 }, { expected: 700, is_record: true });
    const daily_views = site(even, {}).human.days.map((_, index) => ({
      day: addDays(FIRST, index - 7),
      human: 100,
      ai: 10,
      is_outage: false,
    }));
    const earlier = daily_views.map(({ day: date, ...views }) => ({ day: addDays(date, -14), ...views }));
    const days = [...earlier, ...daily_views];
    const burst = days.map((views, index) => (index === 24 ? { ...views, human: 900 } : views));
    const weeks = [3, 2, 1, 0].map((ago) => weekOf(ago));
    const withBurst = weeks.map((week, index) => (index === 3 ? { ...week, human: 1500 } : week));
    const without = compared(weeks, { daily_views: days, usual });
    expect(without.human).toMatchObject({ place: 'inside', record: 20 });
    const week = compared(withBurst, { daily_views: burst, usual });
    expect(week.human).toMatchObject({ place: 'inside', record: null });
  });
});
