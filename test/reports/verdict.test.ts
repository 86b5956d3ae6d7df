import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { compareWeeks, type Comparison } from '../../src/reports/weekly/comparison.js';
import { detailOf } from '../../src/reports/weekly/detail.js';
import { headlineOf } from '../../src/reports/weekly/headline.js';
import type { RecordsRow } from '../../src/reports/weekly/rows.js';

const MONDAY = day('2026-11-09');

type Counts = readonly [human: number, ai: number, daysLoaded?: number] | null;

/** Records of all time before the reported week. */
let records: RecordsRow = { weeks: 0, human: null, ai: null };

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
  const week = compareWeeks(rows.toReversed(), MONDAY, records);
  if (week === undefined) throw new Error('the reported week has to be given');
  return week;
}

const headline = (...given: Counts[]): string =>
  headlineOf(weeks(...given))
    .map(({ text }) => text)
    .join('');
const detail = (...given: Counts[]): string => detailOf(weeks(...given), given.length === 1);

describe('the headline', () => {
  test('says who reads more if there is nothing to compare with', () => {
    expect(headline([18190, 21040])).toBe(
      'AI reads your docs more than people do: 21,040 views against 18,190.',
    );
    expect(headline([21040, 18190])).toBe(
      'People read your docs more than AI does: 21,040 views against 18,190.',
    );
  });
  test('reports that one audience overtook the other', () => {
    expect(headline([18190, 21040], [19000, 18000])).toBe(
      'AI now reads your docs more than people do: 21,040 views against 18,190.',
    );
    expect(headline([20, 18], [17, 19])).toBe(
      'People now read your docs more than AI does: 20 views against 18.',
    );
  });
  test('says “again” only if that audience led before', () => {
    expect(headline([20, 18], [17, 19], [20, 18])).toBe(
      'People again read your docs more than AI does: 20 views against 18.',
    );
  });
  test('reports no overtaking across an incomplete week', () => {
    expect(headline([18, 21], [19, 18, 6])).toBe(
      'AI reads your docs more than people do: 21 views against 18.',
    );
    expect(headline([18, 21, 5], [19, 18])).toBe(
      'AI reads your docs more than people do: 21 views against 18.',
    );
  });
  test('reports the larger of two notable changes', () => {
    expect(headline([300, 150], [260, 100])).toBe(
      'AI read your docs 50% more than last week: 150 views, beside 300 by people.',
    );
    expect(headline([150, 100], [300, 99])).toBe(
      'People read your docs 50% less than last week: 150 views, beside 100 by AI.',
    );
  });
  test('plays down a change that returns to normal', () => {
    expect(headline([300, 100], [200, 100], [310, 110], [290, 90], [305, 95])).toBe(
      'A calm week: people read your docs more than AI does, 300 views against 100.',
    );
  });
  describe('for a record', () => {
    beforeEach(() => {
      records = { weeks: 25, human: 300, ai: 149 };
    });
    afterEach(() => {
      records = { weeks: 0, human: null, ai: null };
    });
    test('reports it if nothing bigger happened', () => {
      expect(headline([300, 150], [300, 149], [290, 140], [300, 141], [298, 142])).toBe(
        'AI reads your docs more than ever: 150 views, the most of 26 weeks. People come to 300.',
      );
      expect(headline([301, 149], [300, 149])).toBe(
        'People read your docs more than ever: 301 views, the most of 26 weeks. AI comes to 149.',
      );
      expect(detail([300, 155], [300, 149], [290, 140], [300, 141], [298, 142])).toBe(
        'People held level with last week, about as usual. AI grew 4%, to its most on record.',
      );
    });
    test('gives way to an overtaking or a notable change', () => {
      expect(headline([300, 400], [310, 149])).toMatch(/^AI now reads/);
      expect(headline([300, 200], [300, 149])).toMatch(/^AI read your docs 34% more/);
    });
    test('requires a full week, and a history of a quarter', () => {
      expect(headline([300, 150, 6], [300, 149])).not.toMatch(/ever/);
      records = { weeks: 11, human: 300, ai: 149 };
      expect(headline([300, 150], [300, 149])).not.toMatch(/ever/);
    });
  });
  test('handles zero views', () => {
    expect(headline([0, 0])).toBe('Nobody read your docs this week: no views by people, none by AI.');
    expect(headline([0, 0, 5])).toBe(
      'Nobody read your docs on the days loaded: no views by people, none by AI.',
    );
    expect(headline([1, 0])).toBe('Only people read your docs: 1 view, and none by AI.');
    expect(headline([0, 12])).toBe('Only AI read your docs: 12 views, and none by people.');
    expect(headline([12, 12])).toBe('People and AI read your docs equally: 12 views each.');
  });
});

describe('the sentences below', () => {
  test('report the growth of each audience, and how usual it is', () => {
    expect(detail([1040, 1190], [1000, 1000], [1050, 990], [1010, 950], [990, 940])).toBe(
      'AI grew 19% on last week, to its most in five weeks. People grew 4%, about as usual.',
    );
    expect(detail([800, 700], [1000, 690], [1050, 720], [1010, 650], [990, 640])).toBe(
      'People fell 20% on last week, to their least in five weeks. AI grew 1%, about as usual.',
    );
  });
  test('report how long one audience has led, unless it always did', () => {
    expect(detail([100, 119], [100, 110], [100, 90])).toBe(
      'AI grew 8% on last week and has been the larger audience for two weeks running. People held level.',
    );
    expect(detail([119, 100], [110, 100])).toBe('People grew 8% on last week. AI held level.');
  });
  test('handle zero views', () => {
    expect(detail([100, 12], [100, 0])).toBe(
      'People held level with last week. AI went from no views to 12.',
    );
    expect(detail([100, 0], [100, 0])).toBe(
      'People held level with last week. AI had no views, as last week.',
    );
    expect(detail([100, 0], [100, 9])).toBe('People held level with last week. AI fell 100%.');
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
