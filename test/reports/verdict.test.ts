import { afterEach, describe, expect, test } from 'vitest';
import { addDays, day } from '../../src/day.js';
import type { Audience } from '../../src/format/audience.js';
import { compareWeeks, type WeekRows } from '../../src/reports/weekly/comparison.js';
import type { UsualRow } from '../../src/reports/weekly/rows.js';
import { textOf } from '../../src/reports/weekly/phrases.js';
import { newsOf, type OtherNews } from '../../src/reports/weekly/sentences.js';

const MONDAY = day('2026-11-09');

type Counts = readonly [human: number, ai: number, daysLoaded?: number] | null;
type Usual = Partial<Record<Audience, Partial<UsualRow>>>;

/** What the macro `usual_range` says of the reported week, and of the one before. */
let usual: Usual = {};
let usualBefore: Usual = {};
let other: Pick<OtherNews, 'moved' | 'pullRequests'> & Partial<OtherNews> = { moved: [], pullRequests: 0 };
/** Views on single days instead of a seventh of the week, by days before the reported Monday. */
let onDays: Record<number, { human?: number; ai?: number }> = {};
/** Who had clearly more views in the reported week, and in the one before. */
let leaders: readonly (Audience | null)[] = [];
afterEach(() => {
  [usual, usualBefore, onDays, leaders] = [{}, {}, {}, []];
  other = { moved: [], pullRequests: 0 };
});
const usualRows = (of: Usual, weeksAgo: number): UsualRow[] =>
  (['human', 'ai'] as const).map((audience) => ({
    week: addDays(MONDAY, -7 * weeksAgo),
    audience,
    low: null,
    high: null,
    expected: null,
    weeks: 26,
    is_record: false,
    leader: leaders[weeksAgo] ?? null,
    ...of[audience],
  }));
const within = (low: number, high: number): Partial<UsualRow> => ({
  low,
  high,
  expected: (low + high) / 2,
});

/** Takes weeks newest first, starting with the reported one; null is a week without loaded days. */
function news(...newestFirst: Counts[]) {
  const weeks = newestFirst.flatMap((counts, index) => {
    if (counts === null) return [];
    const [human, ai, days_loaded = 7] = counts;
    const ai_share = human + ai === 0 ? null : ai / (human + ai);
    return [{ week: addDays(MONDAY, -7 * index), human, ai, ai_share, days_loaded, outages: [] }];
  });
  const daily_views = Array.from({ length: 7 * newestFirst.length }, (_, index) => {
    const ago = 7 * (newestFirst.length - 1) - index;
    const counts = newestFirst[Math.ceil(ago / 7)];
    const [human, ai] = counts ?? [null, null];
    const week = Math.ceil(ago / 7) * 7;
    // The rest of the week is even; its last day has what remains.
    const viewsOf = (audience: Audience, total: number | null) => {
      if (total === null) return null;
      const special = Object.entries(onDays).flatMap(([at, views]) =>
        Number(at) <= week && Number(at) > week - 7 ? (views[audience] ?? []) : [],
      );
      const rest = special.reduce((left, views) => left - views, total);
      const each = Math.floor(rest / (7 - special.length));
      return onDays[ago]?.[audience] ?? (ago === week - 6 ? rest - each * (6 - special.length) : each);
    };
    return {
      day: addDays(MONDAY, -ago),
      human: viewsOf('human', human),
      ai: viewsOf('ai', ai),
      is_outage: false,
    };
  });
  const history: WeekRows = {
    weeks: weeks.toReversed(),
    daily_views,
    usual: [...usualRows(usual, 0), ...usualRows(usualBefore, 1)],
    notes: [],
  };
  const week = compareWeeks(history, MONDAY);
  if (week === null) throw new Error('the reported week is not loaded');
  return newsOf(week, compareWeeks(history, addDays(MONDAY, -7)), {
    isReviewNews: other.pullRequests > 0,
    ...other,
  });
}

const headline = (...given: Counts[]): string => textOf(news(...given).headline);
const detail = (...given: Counts[]): string => news(...given).detail;
const subject = (...given: Counts[]): string => news(...given).news;

/** A site whose weeks vary a little, newest first; the reported one comes before them. */
const STEADY: Counts[] = Array.from({ length: 12 }, (_, index): Counts => [
  20_000 + (index % 3) * 200,
  16_000 - (index % 4) * 150,
]);
const calm = () => {
  usual = { human: within(19_500, 21_000), ai: within(15_000, 16_500) };
  usualBefore = usual;
};

const page = (path: string, audience: Audience, views: number, expected: number) => ({
  path,
  audience,
  human: audience === 'human' ? views : 10,
  ai: audience === 'ai' ? views : 10,
  human_expected: audience === 'human' ? expected : null,
  ai_expected: audience === 'ai' ? expected : null,
  changed: [audience],
});
/** What a page that moved for people as well as for AI has for people. */
const ofBoth = { human: 300, human_expected: 900, changed: ['human', 'ai'] } satisfies Partial<
  OtherNews['moved'][0]
>;

describe('the headline', () => {
  test('gives the totals if there is nothing to compare with', () => {
    expect(headline([18190, 21040])).toBe('18,190 human views and 21,040 AI views.');
    expect(headline([1, 1, 1])).toBe('1 human view and 1 AI view on one of seven days.');
    expect(headline([0, 0, 2])).toBe('0 human views and 0 AI views on two of seven days.');
  });
  test('stands alone if no views were recorded', () => {
    other = { moved: [], pullRequests: 2 };
    const text = 'No views were recorded.';
    const found = news([0, 0], [100, 80]);
    expect(textOf(found.headline)).toBe(text);
    expect(found).toMatchObject({
      detail: '',
      news: text.slice(0, -1),
      stake: 180,
    });
    expect(news([0, 0]).stake).toBe(0);
  });
  test('names the change with the most views at stake, and below it both totals with their changes', () => {
    calm();
    expect(headline([20_000, 19_000], ...STEADY)).toBe('AI views rose 19% to 19,000.');
    expect(detail([20_000, 19_000], ...STEADY)).toBe(
      '20,000 human views (0%) and 19,000 AI views (+19%) compared with the week before.',
    );
    other = { moved: [page('/a', 'ai', 3000, 900)], pullRequests: 0 };
    const { headline: first, detail: details, stake } = news([15_000, 19_000], ...STEADY);
    expect(details).toBe(
      '15,000 human views (−25%) and 19,000 AI views (+19%) compared with the week before. /a had 3,000 AI views, 233% more than expected.',
    );
    expect([textOf(first), stake]).toEqual(['Human views fell 25% to 15,000.', 5_000]);
  });
  test('says what is far above in words that can be grasped', () => {
    usual = { ai: within(15_000, 16_500) };
    expect(headline([20_000, 160_000], ...STEADY)).toMatch(/^AI views rose 10-fold to 160,000/);
    usual = {};
    expect(headline([200, 300], [200, 0])).toBe('AI views rose from none to 300.');
    expect(detail([200, 300], [200, 0])).toBe(
      '200 human views (0% from the week before) and 300 AI views (from 0 the week before).',
    );
    expect(detail([200, 300_000], [200, 20_000])).toBe(
      '200 human views (0% from the week before) and 300,000 AI views (15 times that of the week before).',
    );
  });
  test('says that an audience is gone', () => {
    calm();
    expect(headline([20_000, 0], ...STEADY)).toBe('AI views fell 100% to 0.');
  });
  test('compares totals in the headline in whole words', () => {
    expect(detail([200, 1], [200, 0])).toBe('Compared with the week before: human 0% and AI up from 0.');
  });
  test('says that a change goes on', () => {
    usual = { ai: within(10_000, 12_000) };
    usualBefore = { ai: within(9_000, 9_500) };
    const weeks: Counts[] = [
      [20_000, 14_400],
      [20_000, 12_000],
      [20_000, 10_000],
      [20_000, 9_000],
    ];
    expect(headline(...weeks)).toBe('AI views rose again by 20% to 14,400.');
  });
  test('reports no change of a few views, or within the usual range', () => {
    expect(headline([6, 2], [18, 2])).toBe('6 human views and 2 AI views.');
    expect(detail([6, 2], [18, 2])).toBe('Compared with the week before: human −67% and AI 0%.');
    usual = { human: within(280, 320) };
    expect(headline([300, 100], [300, 100])).toBe('300 human views and 100 AI views.');
    usual = { human: within(280, 320), ai: within(90, 110) };
    expect(headline([300, 100], [200, 100])).toBe('A calm week: human views and AI views are as usual.');
    usual = { human: within(1, 79), ai: within(0, 5) };
    expect(headline([70, 2], [40, 2])).toBe('70 human views and 2 AI views.');
  });
  test('reports a record with its count', () => {
    calm();
    usual = { ...usual, ai: { ...within(15_000, 16_500), is_record: true } };
    expect(headline([20_000, 17_400], ...STEADY)).toBe('AI views are the most in 26 weeks: 17,400.');
    expect(headline([20_000, 19_000], ...STEADY)).toBe('AI views rose 19% to 19,000, the most in 26 weeks.');
  });
});

describe('who leads', () => {
  const BEHIND: Counts[] = Array.from({ length: 8 }, () => [20_000, 18_000]);
  test('is told of a clear lead where the other had more before, with both numbers', () => {
    usual = { ai: within(17_000, 22_000) };
    expect(headline([20_000, 21_500], ...BEHIND)).not.toContain('exceed');
    leaders = ['ai'];
    expect(news([20_000, 21_500], ...BEHIND)).toMatchObject({
      news: 'AI views now exceed human views: 21,500 vs. 20,000',
      stake: 3_500,
    });
    leaders = ['human'];
    expect(headline([20_000, 18_000], ...BEHIND)).not.toContain('exceed');
  });
  test('is no news in the next week', () => {
    leaders = ['ai', 'ai'];
    expect(headline([20_000, 21_500], [20_000, 21_500], ...BEHIND)).not.toContain('exceed');
  });
  test('is not told where a burst alone has the numbers', () => {
    leaders = ['ai'];
    expect(headline([20_000, 19_000], ...BEHIND)).not.toContain('exceed');
  });
});

describe('a night of bots', () => {
  test('is the headline, and that day is not compared', () => {
    calm();
    onDays = { [-1]: { ai: 252_286 } };
    const { headline, detail } = news([20_000, 266_000], ...STEADY);
    expect(textOf(headline)).toBe('252,286 AI views came on one day, Tuesday, Nov 10.');
    expect(detail).toBe(
      '20,000 human views (0% from the week before) and 266,000 AI views (0% from the week before, not counting Tuesday).',
    );
    expect(news([20_000, 266_000], null, ...STEADY).detail).toBe(
      '20,000 human views and 266,000 AI views. Not compared: the week before is not fully loaded.',
    );
  });
  test('in the week before is not compared either', () => {
    calm();
    onDays = { 6: { ai: 252_286 } };
    expect(detail([20_000, 16_000], [20_000, 266_000], ...STEADY)).toContain(
      '16,000 AI views (0% from the week before, not counting Tuesday).',
    );
  });
  test('and another one are both named, with the views of both', () => {
    calm();
    onDays = { [-1]: { ai: 100_000 }, [-3]: { ai: 150_000 } };
    expect(headline([20_000, 262_000], ...STEADY)).toBe(
      '250,000 AI views came on two days, Tuesday, Nov 10 and Thursday, Nov 12.',
    );
  });
});

describe('what else there is', () => {
  test('a page leads a calm week if enough is at stake, and the subject counts the others', () => {
    calm();
    const moved = [page('/v1.2', 'ai', 1810, 900), page('/b', 'human', 300, 200)];
    other = { moved, pullRequests: 2 };
    const words = '/v1.2 had 1,810 AI views, 101% more than expected';
    expect(headline([20_100, 16_000], ...STEADY)).toBe(`${words}.`);
    expect(subject([20_100, 16_000], ...STEADY)).toBe(
      `${words}; 1 more page moved, 2 pull requests to review`,
    );
    other = { moved: [...moved, page('/c', 'human', 300, 200)], pullRequests: 0 };
    expect(subject([20_100, 16_000], ...STEADY)).toBe(`${words}; 2 more pages moved`);
    other = { moved: [page('/b', 'human', 300, 200)], pullRequests: 0 };
    expect(subject([20_100, 16_000], ...STEADY)).toBe(
      'A calm week: human views and AI views are as usual; 1 page moved',
    );
    other = { moved: [page('/c', 'human', 500, 0)], pullRequests: 0 };
    expect(headline([20_100, 16_000], ...STEADY)).toBe('/c had 500 human views, where none were expected.');
    other = { moved: [{ ...page('/c', 'ai', 500, 900), ...ofBoth }], pullRequests: 0 };
    expect(headline([20_100, 16_000], ...STEADY)).toBe(
      '/c had 500 AI views, 44% fewer than expected, and 300 human views, 67% fewer than expected.',
    );
    // There is room for two more.
    onDays = { [-1]: { ai: 250_000 }, [-3]: { human: 150_000 } };
    leaders = ['ai'];
    other = { moved: [page('/v1.2', 'ai', 90_000, 900)], pullRequests: 0 };
    expect(news([162_000, 268_000], ...STEADY).detail).not.toContain('/v1.2');
  });
  test('pull requests are the news of a week without any', () => {
    calm();
    other = { moved: [], pullRequests: 1 };
    expect(headline([20_100, 16_000], ...STEADY)).toBe('One pull request is waiting for your review.');
    expect(subject([20_100, 16_000], ...STEADY)).toBe('One pull request is waiting for your review');
    expect(subject([20_000, 19_000], ...STEADY)).toMatch(/; 1 pull request to review$/);
    other = { moved: [], pullRequests: 2 };
    expect(headline([20_100, 16_000], ...STEADY)).toBe('Two pull requests are waiting for your review.');
    other = { ...other, isReviewNews: false };
    expect(subject([20_100, 16_000], ...STEADY)).toMatch(/^A calm week.*; 2 pull requests to review$/);
  });
});

describe('a week that is not compared', () => {
  test('says why', () => {
    expect(detail([1, 2])).toBe('Not compared: the week before is not fully loaded.');
    expect(detail([1, 2], [1, 2, 5])).toBe('Not compared: the week before is not fully loaded.');
    expect(detail([1, 2, 6], [1, 2])).toBe('');
  });
});
