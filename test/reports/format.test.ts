import { describe, expect, test } from 'vitest';
import { day } from '../../src/day.js';
import {
  bytes,
  changeOf,
  compact,
  counted,
  fromWeekBefore,
  inWords,
  percent,
  ratioWords,
  signedPercent,
  signedPoints,
  thousands,
  writeChange,
} from '../../src/format/numbers.js';
import {
  dayList,
  dayRange,
  duration,
  inSequence,
  longDay,
  moment,
  plainDayRange,
  shortDayRange,
} from '../../src/format/days.js';
import { capitalised, shownPath, siteLink, webLink } from '../../src/format/text.js';
import { templateFunctions } from '../../src/reports/template-functions.js';

const range = (first: string, last: string) => ({ first: day(first), last: day(last) });

describe('numbers', () => {
  test('thousands', () => {
    expect([0, 999, 18190, 1234567].map(thousands)).toEqual(['0', '999', '18,190', '1,234,567']);
  });
  test('bytes are shown as megabytes below a gigabyte, to one decimal', () => {
    expect([0, 4096, 300_000, 2 ** 30 - 2 ** 20, 2 ** 30, 1.55 * 2 ** 40].map(bytes).join(', ')).toBe(
      '0.0 MB, 0.0 MB, 0.3 MB, 1,023.0 MB, 1.0 GB, 1,587.2 GB',
    );
  });
  test('compact numbers keep three digits and switch units at the right values', () => {
    expect([0, 7, 999, 1000, 17234, 30000, 999_499, 999_999, 1_250_000].map(compact).join(' ')).toBe(
      '0 7 999 1.00k 17.2k 30.0k 999k 1.00M 1.25M',
    );
  });
  test('signed percentages have a real minus sign, and no sign on zero', () => {
    expect([-0.994, -0.996, -0.9998, -1].map(signedPercent)).toEqual(['−99%', '−99.6%', '−99.9%', '−100%']);
    const changes = [0.19, -0.03, 0.004, -0.004, 0, 12.5].map(signedPercent);
    expect(changes.join(' ')).toBe('+19% −3% 0% 0% 0% +1,250%');
  });
  test('shares, points and small changes', () => {
    expect([percent(0.536), percent(0), percent(1)]).toEqual(['53.6%', '0.0%', '100.0%']);
    expect([0.034, -0.0004, -0.012].map(signedPoints)).toEqual(['+3.4 pts', '0.0 pts', '−1.2 pts']);
  });
  test('words', () => {
    const views = [1, 0, 1200].map((count) => counted(count, 'view'));
    expect(views).toEqual(['1 view', '0 views', '1,200 views']);
    expect([2, 13, 14].map(inWords)).toEqual(['two', 'thirteen', '14']);
    expect(capitalised('people')).toBe('People');
  });
  test('the size of a change, which is 100% only to zero', () => {
    const sizes = [0.19, 11, -0.5, -0.999, -1].map(ratioWords);
    expect(sizes).toEqual(['19%', '12-fold', '50%', 'more than 99%', '100%']);
  });
  test('changes, including from zero and to zero', () => {
    expect(writeChange(changeOf(119, 100))).toBe('+19%');
    expect(writeChange(changeOf(0, 100))).toBe('−100%');
    expect(writeChange(changeOf(5, 0))).toBe('from 0');
    expect(writeChange(changeOf(0, 0))).toBe('0%');
    expect(fromWeekBefore(changeOf(119, 100))).toBe('from the week before');
    expect(fromWeekBefore(changeOf(1200, 100))).toBe('that of the week before');
    expect(fromWeekBefore(changeOf(5, 0))).toBe('the week before');
    expect(writeChange({ kind: 'new' })).toBe('new');
    expect(writeChange({ kind: 'unknown' })).toBe('–');
  });
});

describe('days', () => {
  test.each([
    ['2026-11-09', '2026-11-15', 'Mon, Nov 9 – Sun, Nov 15, 2026', 'Nov 9 – 15', ', 2026'],
    ['2026-11-30', '2026-12-06', 'Mon, Nov 30 – Sun, Dec 6, 2026', 'Nov 30 – Dec 6', ', 2026'],
    ['2026-12-28', '2027-01-03', 'Mon, Dec 28, 2026 – Sun, Jan 3, 2027', 'Dec 28, 2026 – Jan 3, 2027', ''],
    ['2026-11-09', '2026-11-09', 'Mon, Nov 9, 2026', 'Nov 9', ', 2026'],
    // The same month of another year is a different month.
    ['2025-11-09', '2026-11-15', 'Sun, Nov 9, 2025 – Sun, Nov 15, 2026', 'Nov 9, 2025 – Nov 15, 2026', ''],
  ])('%s to %s', (first, last, long, short, year) => {
    expect(dayRange(range(first, last))).toBe(long);
    expect(shortDayRange(range(first, last))).toBe(short);
    expect(plainDayRange(range(first, last))).toBe(short + year);
  });
  test('lists merge consecutive days', () => {
    const days = ['2026-11-09', '2026-11-10', '2026-11-12', '2026-11-14', '2026-11-15'].map(day);
    expect(dayList(days)).toBe('Nov 9 – 10, Nov 12 and Nov 14 – 15');
    expect(dayList(days.slice(2, 3))).toBe('Nov 12');
    expect(inSequence([])).toBe('');
  });
  test('single days and times are in UTC', () => {
    expect(longDay(day('2026-05-18'))).toBe('May 18, 2026');
    expect(moment(new Date('2026-11-18T23:59:00Z'), 'UTC')).toBe('Nov 18, 2026 at 23:59 UTC');
    expect(moment(new Date('2026-09-18T23:59:00Z'), 'Europe/Zurich')).toBe('Sep 19, 2026 at 01:59 UTC+2');
  });
  test('durations have at most two units, and are never 0 s', () => {
    expect([0, 499, 500, 59_499, 59_500, 200_000, 7_530_000].map(duration)).toEqual([
      ...['under 1 s', 'under 1 s', '1 s', '59 s', '1 min 0 s', '3 min 20 s', '2 h 5 min'],
    ]);
  });
});

describe('paths', () => {
  test('a very long path is shortened in the middle, between characters', () => {
    const cut = shownPath(`/${'😀'.repeat(2000)}/end`);
    expect(Array.from(cut)).toHaveLength(88);
    expect(cut).toMatch(/^\/😀+…😀+\/end$/u);
    expect(shownPath('/quickstart')).toBe('/quickstart');
  });

  const NO_PAGES = ['javascript:alert(1)', '//evil.example/x', '/\\evil.example', 'quickstart', '', '?x'];
  test.each([...NO_PAGES, '@evil.example'])('“%s” is not a link', (path) => {
    expect(siteLink('https://docs.example.com', path)).toBeUndefined();
  });

  test('a page links to its site, and never anywhere else', () => {
    expect(siteLink('https://docs.example.com/', '/quick start"x')).toBe(
      'https://docs.example.com/quick%20start%22x',
    );
    expect(siteLink('https://example.com/docs', '/guides')).toBe('https://example.com/docs/guides');
    expect(siteLink('javascript:alert(1)', '/guides')).toBeUndefined();
    expect(siteLink(null, '/guides')).toBeUndefined();
  });

  test('only web addresses are links', () => {
    expect(webLink('https://github.com/acme/docs/pull/1')).toBe('https://github.com/acme/docs/pull/1');
    for (const other of ['javascript:alert(1)', 'data:text/html,x', 'pull/1', null])
      expect(webLink(other), String(other)).toBeUndefined();
  });
});

describe('template functions', () => {
  const call = (name: string, ...values: unknown[]): unknown => templateFunctions[name]?.call({}, ...values);

  test('the length of a bar is its share of the longest one', () => {
    expect([call('barLength', 50, 200), call('barLength', 0, 0)]).toEqual(['25%', '0%']);
  });
  test('a path can break after a slash, and is escaped', () => {
    expect(String(call('brokenPath', '/a/<b>'))).toBe('/a/<wbr>&lt;b&gt;');
  });
  test('a value of the wrong type is rejected', () => {
    expect(() => call('thousands', undefined)).toThrow();
    expect(() => call('dayRange', { first: '2026-11-09' })).toThrow();
  });
  test('`has`, for empty and other values', () => {
    expect([[], null, 0].map((value) => call('has', value))).toEqual([false, false, false]);
    expect([[1], 3, 'x'].map((value) => call('has', value))).toEqual([true, true, true]);
  });
});
