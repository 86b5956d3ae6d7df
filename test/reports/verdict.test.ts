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
let more: Partial<Pick<WeekRows, 'causes' | 'notes'> & OtherNews['coverage']> = {};
afterEach(() => {
  [usual, usualBefore, onDays, more] = [{}, {}, {}, {}];
  other = { moved: [], pullRequests: 0 };
});
const usualRows = (of: Usual, weeksAgo: number): UsualRow[] =>
  (['human', 'ai'] as const).map((audience) => ({
    week: addDays(MONDAY, -7 * weeksAgo),
    audience,
    low: null,
    high: null,
    expected: null,
    weeks_used: null,
    weeks: 26,
    is_record: false,
    ...of[audience],
  }));
const within = (low: number, high: number): Partial<UsualRow> => ({
  low,
  high,
  expected: (low + high) / 2,
  weeks_used: 12,
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
    causes: [],
    notes: [],
    ...more,
  };
  const coverage = {
    historySince: addDays(MONDAY, -7 * (newestFirst.length - 1)),
    hasOlder: false,
    ...more,
  };
  const week = compareWeeks(history, MONDAY);
  if (week === null) throw new Error('the reported week is not loaded');
  return newsOf(week, compareWeeks(history, addDays(MONDAY, -7)), {
    ...{ isReviewNews: other.pullRequests > 0, coverage },
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
  test('says that an audience is back in its usual range, only after a week outside that was told', () => {
    calm();
    expect(headline([20_000, 16_000], [30_000, 16_000], ...STEADY)).toBe(
      'Human views are back in their usual range: 20,000, after 30,000 the week before.',
    );
    expect(headline([20_000, 16_000], [20_500, 16_000], ...STEADY)).toMatch(/^A calm week/);
  });
  test('names the change with the most views at stake, and below it both totals with their changes', () => {
    calm();
    expect(headline([20_000, 19_000], ...STEADY)).toBe('AI views rose 19% to 19,000.');
    expect(detail([20_000, 19_000], ...STEADY)).toBe(
      '20,000 human views (0%) and 19,000 AI views (+19%) compared with the week before.',
    );
    expect(headline([15_000, 19_000], ...STEADY)).toBe('AI views now exceed human views: 19,000 vs. 15,000.');
    other = { moved: [page('/a', 'ai', 3000, 900)], pullRequests: 0 };
    const { headline: first, detail: details, stake } = news([15_000, 19_000], ...STEADY);
    expect(details).toBe(
      '15,000 human views (−25%) and 19,000 AI views (+19%) compared with the week before. /a had 3,000 AI views, 233% more than expected.',
    );
    expect([textOf(first), stake]).toEqual(['AI views now exceed human views: 19,000 vs. 15,000.', 8_000]);
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
  test('says that an audience is gone once, and neither that it fell nor that the other leads', () => {
    calm();
    expect(textOf(news([20_000, 0], ...STEADY).headline)).toBe('No AI views were recorded.');
    const { headline, detail } = news([0, 16_000], ...STEADY);
    expect(textOf(headline)).toBe('No human views were recorded.');
    expect(detail).toBe('0 human views (−100%) and 16,000 AI views (0%) compared with the week before.');
  });
  test('says once that views rose from none', () => {
    usual = { ai: { is_record: true } };
    expect(headline([400, 300], [0, 0])).toBe(
      '400 human views and 300 AI views, after none the week before.',
    );
  });
  test('compares totals in the headline in whole words', () => {
    expect(detail([200, 1], [200, 0])).toBe('Compared with the week before: human 0% and AI up from 0.');
  });
  test('of a history that starts in the week before says so, instead of missing days', () => {
    more = { historySince: addDays(MONDAY, -1) };
    const starts = 'The history starts on Nov 8, 2026, so there is no full week to compare it with yet.';
    expect(detail([200, 300], [30, 40, 1])).toContain(starts);
    more = { historySince: addDays(MONDAY, -7) };
    expect(detail([200, 300], [30, 40, 1])).toContain('Only one of the seven days of the week before');
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
    expect(headline([20_000, 17_400], ...STEADY)).toBe('AI views hit a 26-week high: 17,400.');
    expect(headline([20_000, 19_000], ...STEADY)).toBe('AI views rose 19% to 19,000, a 26-week high.');
  });
  test('tells the course of a quarter instead of calling it calm', () => {
    const growing = Array.from({ length: 13 }, (_, ago): Counts => [
      20_000,
      Math.round(20_000 * 0.96 ** ago),
    ]);
    usual = { human: within(19_000, 21_000), ai: within(19_000, 21_000) };
    usualBefore = usual;
    expect(headline(...growing)).toBe(
      'AI views have grown 50% in thirteen weeks, from about 12,765 to 19,200 a week.',
    );
    // Not in a week in which they are fewer than usual.
    usual = { ...usual, ai: within(20_500, 22_000) };
    expect(headline(...growing)).not.toContain('have grown');
  });
  test('tells an audience that is missing, or nearly, only when that is new', () => {
    expect(headline([1000, 0], [1000, 90])).toMatch(/^No AI views were recorded\.$/);
    expect(headline([90_000, 90], [90_000, 5000])).toBe('AI views fell 98% to 90.');
    expect(detail([90_000, 90], [90_000, 5000])).toContain('AI views are less than 1% of all views.');
    expect(headline([300, 90_000], [300, 220])).toMatch(/^AI views rose 409-fold to 90,000\.$/);
    usual = { human: within(900, 1100), ai: within(0, 0) };
    expect(headline([1000, 0], [1000, 0])).not.toContain('No AI');
  });
});

describe('who leads', () => {
  const LEVEL: Counts[] = [0, 900, -700, 400, -900, 600, -300, 800].map((more) => [20_000 + more, 20_000]);
  test('is told of a clear lead, with both numbers', () => {
    const weeks: Counts[] = Array.from({ length: 8 }, (_, index) => [20_000 + (index % 2) * 100, 18_000]);
    expect(headline([20_000, 21_500], ...weeks)).toMatch(
      /^AI views (?:now exceed human views: 21,500 vs\. 20,000|rose 19% to 21,500)\.$/,
    );
    expect(detail([20_000, 21_500], ...weeks) + headline([20_000, 21_500], ...weeks)).toContain(
      'AI views now exceed human views: 21,500 vs. 20,000.',
    );
  });
  test('is no news on a site with equal audiences', () => {
    for (const ai of [19_400, 20_600, 21_000])
      expect(headline([20_000, ai], ...LEVEL) + detail([20_000, ai], ...LEVEL)).not.toContain('exceed');
  });
});

describe('the cause', () => {
  const flat = (views: number) => Array.from({ length: 7 }, () => views);
  const elsewhere = {
    audience: 'human' as const,
    path: '/other',
    is_page: true,
    days: flat(0).concat(flat(0)),
  };
  test('is the page with most of the change', () => {
    calm();
    more = {
      causes: [{ audience: 'ai', path: '/x', is_page: true, days: [...flat(100), ...flat(400)] }, elsewhere],
    };
    expect(headline([20_000, 19_000], ...STEADY)).toBe(
      'AI views rose 19% to 19,000, 70% of the rise on one page, /x.',
    );
  });
  test('is not told again of the page, but what the other audience did there', () => {
    calm();
    more = {
      causes: [{ audience: 'ai', path: '/x', is_page: true, days: [...flat(100), ...flat(400)] }, elsewhere],
    };
    const moved = { ...page('/x', 'ai', 2800, 700), ...ofBoth };
    const told = (changed: Audience[]) => {
      other = { moved: [{ ...moved, changed }], pullRequests: 0 };
      return /(?<=week before\. ).*/.exec(detail([20_000, 19_000], ...STEADY))?.[0];
    };
    expect(told(['human', 'ai'])).toBe('/x had 300 human views, 67% fewer than expected.');
    expect(told(['ai'])).toBeUndefined();
  });
  test('is the day of the page, or the day alone', () => {
    calm();
    const week = flat(100).with(1, 2400);
    more = {
      causes: [{ audience: 'ai', path: '/x', is_page: true, days: [...flat(100), ...week] }, elsewhere],
    };
    expect(headline([20_000, 19_000], ...STEADY)).toBe(
      'AI views rose 19% to 19,000, 77% of the rise on one page, /x, on Tuesday, Nov 10.',
    );
    more = {};
    onDays = { [-2]: { ai: 5600 } };
    expect(headline([20_000, 19_000], ...STEADY)).toContain('on Wednesday, Nov 11');
  });
  test('of a night of bots is the headline, and that day is not compared', () => {
    calm();
    onDays = { [-1]: { ai: 252_286 } };
    const days = [...flat(10), ...flat(10).with(1, 250_010)];
    more = { causes: [{ audience: 'ai', path: '/x', is_page: true, days }, elsewhere] };
    const { headline, detail } = news([20_000, 266_000], ...STEADY);
    expect(textOf(headline)).toBe(
      '252,286 AI views came on one day, Tuesday, Nov 10, most of them to one page, /x.',
    );
    expect(detail).toBe(
      '20,000 human views (0% from the week before) and 266,000 AI views. Without Tuesday, the other six days had 13,714 AI views (0% from the week before).',
    );
    expect(news([20_000, 266_000], null, ...STEADY).detail).toBe(
      '20,000 human views and 266,000 AI views. The week before, Nov 2 – 8, is not loaded, so no change is shown.',
    );
  });
  test('of the fall after it is told as well, and no fall is claimed', () => {
    calm();
    usualBefore = {};
    onDays = { 6: { ai: 252_286 } };
    const { headline, detail } = news([20_000, 16_000], [20_000, 266_000], ...STEADY);
    expect(textOf(headline)).not.toContain('fell');
    expect(detail).toContain(
      'In the week before, 252,286 AI views came on Tuesday, Nov 3. Without Tuesday, the other six',
    );
    usual = {};
    expect(news([20_000, 16_000], [20_000, 266_000], ...STEADY).detail).toMatch(/^In the week before, /);
    onDays = { 6: { ai: 252_286 }, [0]: { ai: 252_286 } };
    expect(news([20_000, 266_000], [20_000, 266_000], ...STEADY).detail).toContain(
      'Without Monday and Tuesday, the other five days had',
    );
  });
  test('of nights on which people and AI came is left out once, in a sentence for both', () => {
    calm();
    const both = { human: 60_000, ai: 252_286 };
    onDays = { [-1]: both };
    expect(detail([77_144, 266_000], ...STEADY)).toContain(
      '. 60,000 human views came on one day, Tuesday, Nov 10. Without Tuesday, the other six days had 17,144 human views (0% from the week before) and 13,714 AI views (0% from the week before).',
    );
    onDays = { 6: both };
    expect(detail([20_000, 16_000], [77_144, 266_000], ...STEADY)).toMatch(
      /In the week before, 60,000 human views and 252,286 AI views came on Tuesday, Nov 3\. Without Tuesday, [^.]+\.$/,
    );
  });
  test('of two nights of bots names both days, and the views of both', () => {
    calm();
    onDays = { [-1]: { ai: 100_000 }, [-3]: { ai: 150_000 } };
    const days = [...flat(10), ...flat(10).with(1, 98_000).with(3, 147_000)];
    more = { causes: [{ audience: 'ai', path: '/x', is_page: true, days }, elsewhere] };
    expect(headline([20_000, 262_000], ...STEADY)).toBe(
      '250,000 AI views came on two days, Tuesday, Nov 10 and Thursday, Nov 12, most of them to one page, /x.',
    );
    [more, onDays] = [{}, { 6: { ai: 100_000 }, 4: { ai: 150_000 } }];
    expect(detail([20_000, 16_000], [20_000, 262_000], ...STEADY)).toContain(
      'In the week before, 250,000 AI views came on Tuesday, Nov 3 and Thursday, Nov 5. Without Tuesday and Thursday, the other five',
    );
  });
  test('of a fall is that there were no views on some days, and so is that of the rise after them', () => {
    calm();
    onDays = { [-2]: { human: 0 }, [-3]: { human: 0 } };
    expect(headline([14_000, 16_000], ...STEADY)).toBe(
      'Human views fell 30% to 14,000, with none on Wednesday, Nov 11 and Thursday, Nov 12.',
    );
    usual = { human: within(15_000, 18_000) };
    onDays = { 5: { human: 0 }, 4: { human: 0 } };
    expect(headline([20_000, 16_000], [14_000, 16_000], ...STEADY)).toBe(
      'Human views rose 43% to 20,000, after none on Wednesday, Nov 4 and Thursday, Nov 5.',
    );
  });
  test('that both audiences share is said once', () => {
    calm();
    onDays = { [-2]: { human: 0, ai: 0 } };
    const { headline, detail } = news([16_000, 12_000], ...STEADY);
    expect(textOf(headline)).toBe(
      'Human views fell 20% to 16,000, with no views at all on Wednesday, Nov 11.',
    );
    expect(detail).toBe(
      '16,000 human views (−20%) and 12,000 AI views (−25%) compared with the week before.',
    );
    // But not that one of them hit a high.
    onDays = { 5: { human: 0, ai: 0 } };
    usual = { human: within(15_000, 18_000), ai: { ...within(15_000, 15_500), is_record: true } };
    expect(news([20_000, 16_000], [15_000, 12_000], ...STEADY).detail).toContain('a 26-week high, after no');
  });
  test('is not named on a site with a single page', () => {
    calm();
    more = { causes: [{ audience: 'ai', path: '/', is_page: true, days: [...flat(100), ...flat(528)] }] };
    expect(headline([20_000, 19_000], ...STEADY)).toBe('AI views rose 19% to 19,000.');
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
    expect(detail([1, 2])).toBe(
      'This is the first week in the history, so there is nothing to compare it with yet.',
    );
    expect(detail([1, 2], null, [1, 2])).toBe(
      'The week before, Nov 2 – 8, is not loaded, so no change is shown.',
    );
    expect(detail([1, 2], [1, 2, 5])).toBe(
      'Only five of the seven days of the week before, Nov 2 – 8, are loaded, so no change is shown.',
    );
    expect(detail([1, 2], [1, 2, 1])).toContain(
      'Only one of the seven days of the week before, Nov 2 – 8, is',
    );
    expect(detail([1, 2, 6], [1, 2])).toBe('');
    more = { hasOlder: true };
    expect(detail([1, 2])).toBe('Earlier weeks are not loaded yet, so there is nothing to compare it with.');
  });
});
