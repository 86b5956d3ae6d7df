import { afterEach, describe, expect, test } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { compareWeeks, type Audience } from '../../src/reports/weekly/comparison.js';
import type { UsualRow } from '../../src/reports/weekly/comparison.js';
import { newsOf, type OtherNews } from '../../src/reports/weekly/sentences.js';

const MONDAY = day('2026-11-09');

type Counts = readonly [human: number, ai: number, daysLoaded?: number] | null;

type Usual = Partial<Record<Audience, Partial<UsualRow>>>;

/** What the macro `usual_range` says of the reported week, and of the one before. */
let usual: Usual = {};
let usualBefore: Usual = {};
let other: OtherNews = { moved: [], pullRequests: 0 };
afterEach(() => {
  [usual, usualBefore] = [{}, {}];
  other = { moved: [], pullRequests: 0 };
});
const usualRows = (of: Usual, weeksAgo: number): UsualRow[] =>
  (['human', 'ai'] as const).map((audience) => ({
    ...{ week: addDays(MONDAY, -7 * weeksAgo), audience },
    ...{ low: null, high: null, weeks_used: null, weeks: 26, is_record: false },
    ...of[audience],
  }));
const within = (low: number, high: number): Partial<UsualRow> => ({ low, high, weeks_used: 12 });

/** Takes weeks newest first, starting with the reported one; null is a week without loaded days. */
function news(...newestFirst: Counts[]) {
  const rows = newestFirst.flatMap((counts, index) => {
    if (counts === null) return [];
    const [human, ai, days_loaded = 7] = counts;
    const ai_share = human + ai === 0 ? null : ai / (human + ai);
    return [{ week: addDays(MONDAY, -7 * index), human, ai, ai_share, days_loaded }];
  });
  const since = addDays(MONDAY, -7 * (newestFirst.length - 1));
  const from = (weeksAgo: number) =>
    compareWeeks(
      rows.toReversed(),
      addDays(MONDAY, -7 * weeksAgo),
      [...usualRows(usual, 0), ...usualRows(usualBefore, 1)],
      since,
    );
  const week = from(0);
  if (week === null) throw new Error('the reported week is not loaded');
  return newsOf(week, from(1), other);
}

const headline = (...given: Counts[]): string =>
  news(...given)
    .headline.map(({ text }) => text)
    .join('');
const detail = (...given: Counts[]): string => news(...given).detail;
const subject = (...given: Counts[]): string => news(...given).subject;

describe('the headline', () => {
  test('says who reads more if there is nothing to compare with', () => {
    expect(headline([18190, 21040])).toBe('AI reads your docs more than people do.');
    expect(headline([21040, 18190])).toBe('People read your docs more than AI does.');
  });
  test('reports that one audience overtook the other', () => {
    expect(headline([18190, 21040], [19000, 18000])).toBe('AI now reads your docs more than people do.');
    expect(headline([20, 18], [17, 19])).toBe('People now read your docs more than AI does.');
  });
  test('says “again” only if that audience led before', () => {
    expect(headline([20, 18], [17, 19], [20, 18])).toBe('People again read your docs more than AI does.');
  });
  test('reports no overtaking across an incomplete week', () => {
    expect(headline([18, 21], [19, 18, 6])).toBe('AI reads your docs more than people do.');
    expect(headline([18, 21, 5], [19, 18])).toBe(
      'The week is incomplete: five of its seven days are loaded.',
    );
  });
  test('reports the larger of two notable changes, and the other below', () => {
    expect(headline([300, 150], [260, 100])).toBe('AI read your docs 50% more than last week.');
    expect(detail([300, 150], [260, 100])).toBe('People read your docs 15% more than last week.');
    expect(headline([150, 100], [300, 99])).toBe('People read your docs 50% less than last week.');
  });
  test('plays down a change that returns to normal', () => {
    usual = { human: within(280, 320), ai: within(90, 110) };
    expect(headline([300, 100], [200, 100])).toBe('A calm week: views by people and AI are as usual.');
  });
  test('reports a record if nothing bigger happened', () => {
    usual = { ai: { ...within(130, 149), is_record: true } };
    expect(headline([300, 150], [300, 149])).toBe('AI reads your docs more than ever: the most in 26 weeks.');
    expect(headline([300, 400], [310, 149])).toMatch(/^AI now reads/);
    expect(headline([300, 200], [300, 149])).toMatch(/^AI read your docs 34% more/);
    expect(detail([300, 200], [300, 149])).toBe('AI reads your docs more than ever: the most in 26 weeks.');
    usual = { human: { ...within(290, 300), is_record: true } };
    expect(headline([301, 149], [300, 149])).toBe(
      'People read your docs more than ever: the most in 26 weeks.',
    );
  });
  test('handles zero views, and few', () => {
    expect(headline([0, 0])).toBe('No views were recorded this week: tracking may have stopped.');
    expect(headline([0, 0, 1])).toBe('The week is incomplete: one of its seven days is loaded.');
    expect(headline([1, 0])).toBe('Only people read your docs: no views by AI.');
    expect(headline([0, 12])).toBe('Only AI read your docs: no views by people.');
    expect(headline([12, 12])).toBe('People and AI read your docs equally.');
    expect(headline([1000, 9])).toBe('AI hardly reads your docs.');
    expect(headline([9, 1000])).toBe('People hardly read your docs.');
  });
});

describe('last week’s news is not reported as new', () => {
  test('for a change that continues, unless there is no other news', () => {
    expect(headline([100, 144], [100, 120], [100, 99])).toBe('AI stays ahead of people for a second week.');
    expect(headline([900, 144], [900, 120], [900, 100])).toBe(
      'Again, AI read your docs 20% more than last week.',
    );
    other = { moved: [], pullRequests: 2 };
    expect(headline([900, 144], [900, 120], [900, 100])).toBe('Two pull requests await your review.');
    // A fall after a rise is news.
    expect(headline([900, 100], [900, 120], [900, 100])).toBe('AI read your docs 17% less than last week.');
  });
  test('for a record, a single audience, and a calm week', () => {
    usual = { human: { ...within(90, 100), is_record: true } };
    usualBefore = { human: { ...within(80, 90), is_record: true } };
    expect(headline([105, 30], [101, 30])).toBe('Another record: people read your docs more than ever.');
    [usual, usualBefore] = [{}, {}];
    expect(headline([100, 0], [100, 0])).toBe('Still only people read your docs.');
    expect(headline([1000, 3], [1000, 3])).toBe('AI still hardly reads your docs.');
    usual = usualBefore = { human: within(90, 110), ai: within(40, 60) };
    expect(headline([100, 50], [100, 50])).toBe('Another calm week: views by people and AI are as usual.');
    usualBefore = { human: within(10, 20), ai: within(40, 60) };
    expect(headline([100, 50], [100, 50])).toBe('A calm week: views by people and AI are as usual.');
  });
  test('for an audience that is ahead for a third week', () => {
    expect(headline([100, 104], [100, 103], [100, 90])).toBe('AI stays ahead of people for a second week.');
    expect(headline([100, 105], [100, 104], [100, 103], [100, 90])).toBe(
      'AI still reads your docs more than people do.',
    );
  });
});

describe('pages that moved and pull requests', () => {
  const page = { path: '/guides/webhooks', audience: 'ai' as const, views: 250, expected: 100 };

  test('make the headline where the audiences bring no news, and are counted in the subject', () => {
    other = { moved: [page, { ...page, audience: 'human' }, { ...page, path: '/b' }], pullRequests: 1 };
    expect(headline([100, 50], [100, 50])).toBe('AI read /guides/webhooks 150% more than expected.');
    expect(subject([100, 50], [100, 50])).toBe(
      'AI read /guides/webhooks 150% more than expected; 1 more page moved, 1 pull request to review',
    );
    expect(subject([100, 110], [100, 50])).toBe(
      'AI now reads your docs more than people do; 2 pages moved, 1 pull request to review',
    );
    expect(detail([100, 50], [100, 50])).toBe('');
  });
  test('say which way, and cut a long path', () => {
    other = { moved: [{ ...page, views: 20 }], pullRequests: 0 };
    expect(headline([100, 50], [100, 50])).toBe('AI read /guides/webhooks 80% less than expected.');
    other = { moved: [{ ...page, audience: 'human', expected: 0 }], pullRequests: 0 };
    expect(headline([100, 50], [100, 50])).toBe(
      'People found /guides/webhooks: 250 views where none were expected.',
    );
    other = { moved: [{ ...page, path: `/${'x'.repeat(80)}/end` }], pullRequests: 0 };
    expect(headline([100, 50], [100, 50])).toMatch(/^AI read \/x{19}…x{23}\/end 150% more/);
  });
  test('are said once', () => {
    other = { moved: [], pullRequests: 1 };
    expect(subject([100, 50], [100, 50])).toBe('One pull request awaits your review');
  });
});

describe('the sentence below', () => {
  test('says why nothing is compared', () => {
    expect(detail([1, 2])).toBe(
      'This is the first week in the history, so there is nothing to compare it with yet.',
    );
    expect(detail([1, 2], null, [1, 2])).toBe(
      'The week before, Nov 2 – 8, is not loaded, so no change is shown.',
    );
    expect(detail([1, 2], [1, 2, 5])).toBe(
      'Only five of the seven days of the week before, Nov 2 – 8, are loaded, so no change is shown.',
    );
    expect(detail([1, 2], [1, 2, 1])).toBe(
      'Only one of the seven days of the week before, Nov 2 – 8, is loaded, so no change is shown.',
    );
    expect(detail([1, 2, 6], [1, 2])).toBe('');
  });
});
