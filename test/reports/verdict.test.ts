import { afterEach, describe, expect, test } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { compareWeeks, type Audience, type Comparison } from '../../src/reports/weekly/comparison.js';
import type { UsualRow } from '../../src/reports/weekly/rows.js';
import { detailOf, headlineOf } from '../../src/reports/weekly/sentences.js';

const MONDAY = day('2026-11-09');

type Counts = readonly [human: number, ai: number, daysLoaded?: number] | null;

type Usual = Partial<Record<Audience, Partial<UsualRow>>>;

/** What the macro `usual_range` says of the reported week. */
let usual: Usual = {};
afterEach(() => {
  usual = {};
});
const usualRows = (): UsualRow[] =>
  (['human', 'ai'] as const).map((audience) => ({
    ...{ audience, low: null, high: null, weeks_used: null, weeks: 26, is_record: false },
    ...usual[audience],
  }));
const within = (low: number, high: number): Partial<UsualRow> => ({ low, high, weeks_used: 12 });

/** Takes weeks newest first, starting with the reported one; null is a week without loaded days. */
function weeks(...newestFirst: Counts[]): Comparison {
  const rows = newestFirst.flatMap((counts, index) => {
    if (counts === null) return [];
    const [human, ai, days_loaded = 7] = counts;
    return [
      {
        week: addDays(MONDAY, -7 * index),
        human,
        ai,
        ai_share: ai / (human + ai),
        days_loaded,
      },
    ];
  });
  const week = compareWeeks(rows.toReversed(), MONDAY, usualRows());
  return week;
}

const headline = (...given: Counts[]): string =>
  headlineOf(weeks(...given))
    .map(({ text }) => text)
    .join('');
const detail = (...given: Counts[]): string => detailOf(weeks(...given), given.length === 1);

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
  test('reports the larger of two notable changes', () => {
    expect(headline([300, 150], [260, 100])).toBe('AI read your docs 50% more than last week.');
    expect(headline([150, 100], [300, 99])).toBe('People read your docs 50% less than last week.');
  });
  test('plays down a change that returns to normal', () => {
    usual = { human: within(280, 320), ai: within(90, 110) };
    expect(headline([300, 100], [200, 100])).toBe('A calm week: people read your docs more than AI does.');
  });
  describe('for a record', () => {
    test('reports it if nothing bigger happened', () => {
      usual = { ai: { ...within(130, 149), is_record: true } };
      expect(headline([300, 150], [300, 149])).toBe(
        'AI reads your docs more than ever: the most in 26 weeks.',
      );
      expect(detail([300, 155], [300, 149])).toBe(
        'Human views held steady. AI views rose 4%, to a record high.',
      );
      usual = { human: { ...within(290, 300), is_record: true } };
      expect(headline([301, 149], [300, 149])).toBe(
        'People read your docs more than ever: the most in 26 weeks.',
      );
    });
    test('gives way to an overtaking or a notable change', () => {
      usual = { ai: { ...within(130, 149), is_record: true } };
      expect(headline([300, 400], [310, 149])).toMatch(/^AI now reads/);
      expect(headline([300, 200], [300, 149])).toMatch(/^AI read your docs 34% more/);
    });
  });
  test('handles zero views', () => {
    expect(headline([0, 0])).toBe('No views were recorded this week: counting may have stopped.');
    expect(headline([0, 0, 1])).toBe('The week is incomplete: one of its seven days is loaded.');
    expect(headline([1, 0])).toBe('Only people read your docs: no views by AI.');
    expect(headline([0, 12])).toBe('Only AI read your docs: no views by people.');
    expect(headline([12, 12])).toBe('People and AI read your docs equally.');
  });
});

describe('the sentences below', () => {
  test('report the growth of each audience, and how usual it is', () => {
    usual = { human: within(990, 1050), ai: within(900, 1100) };
    expect(detail([1040, 1190], [1000, 1000])).toBe(
      'AI views rose 19% from last week, more than usual. Human views rose 4%, about as usual.',
    );
    usual = { human: within(990, 1050), ai: within(640, 720) };
    expect(detail([800, 700], [1000, 690])).toBe(
      'Human views fell 20% from last week, less than usual. AI views rose 1%, about as usual.',
    );
  });
  test('report how long one audience has led, unless it always did', () => {
    expect(detail([100, 119], [100, 110], [100, 90])).toBe(
      'AI views rose 8% from last week. Human views held steady. AI has been the larger audience for two weeks running.',
    );
    expect(detail([119, 100], [110, 100])).toBe('Human views rose 8% from last week. AI views held steady.');
  });
  test('have words for none', () => {
    expect(detail([100, 12], [100, 0])).toBe('Human views held steady. AI views went from none to 12.');
    expect(detail([100, 0], [100, 0])).toBe('Human views held steady. AI views stayed at zero.');
    expect(detail([100, 0], [100, 9])).toBe('Human views held steady. AI views fell 100%.');
  });
  test('say why nothing is compared', () => {
    expect(detail([1, 2])).toBe(
      'This is the first week in the history, so there is nothing to compare it with yet.',
    );
    expect(detail([1, 2], null, [1, 2])).toBe(
      'The week before, 2 – 8 Nov, is not loaded, so no change is shown.',
    );
    expect(detail([1, 2], [1, 2, 5])).toBe(
      'Only five of the seven days of the week before, 2 – 8 Nov, are loaded, so no change is shown.',
    );
    expect(detail([1, 2], [1, 2, 1])).toBe(
      'Only one of the seven days of the week before, 2 – 8 Nov, is loaded, so no change is shown.',
    );
    expect(detail([1, 2, 6], [1, 2])).toBe('');
  });
});
