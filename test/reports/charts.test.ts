import { describe, expect, it, test } from 'vitest';
import { day } from '../../src/day.js';
import type { Row } from '../../src/history/duckdb.js';
import { barsOf, linesOf } from '../../src/reports/charts.js';

const daily = (days: readonly string[], column = 'day') =>
  days.map((at, index) => ({ [column]: at, human: index }));
const query = { name: 'views', file: 'views.sql', title: 'Views', columns: undefined };
const ofHuman = { ...query, columns: ['human'] };

describe('rows as lines', () => {
  it.each([
    ['days', ['2026-11-01', '2026-11-02'], ['2026-11-01', '2026-11-02']],
    ['weeks', ['2026-11-02', '2026-11-09'], ['2026-11-08', '2026-11-15']],
    ['months', ['2026-01-01', '2026-02-01'], ['2026-01-31', '2026-02-28']],
    ['quarters', ['2026-01-01', '2026-04-01'], ['2026-03-31', '2026-06-30']],
    ['one day', ['2026-11-09'], ['2026-11-09']],
  ])('of %s cover their days', (_, firsts, lasts) => {
    const { points } = linesOf(ofHuman, daily(firsts));
    expect(points.map(({ first }) => first)).toEqual(firsts);
    expect(points.map(({ last }) => last)).toEqual(lasts);
  });

  it('have a gap where days have no row, in whatever order the rows are', () => {
    const rows = daily(['2026-11-05', '2026-11-01', '2026-11-02']);
    const { points, lines } = linesOf(ofHuman, rows);
    expect(points.map(({ first, last }) => [first, last])).toEqual([
      ['2026-11-01', '2026-11-01'],
      ['2026-11-02', '2026-11-02'],
      ['2026-11-03', '2026-11-04'],
      ['2026-11-05', '2026-11-05'],
    ]);
    expect(lines[0]?.values).toEqual([1, 2, null, 0]);
  });

  it('show shares as percentages, and views by people and AI in their colors', () => {
    const rows = [{ week: '2026-11-02', ai_share: 0.25 }];
    const share = linesOf(query, rows);
    expect(share).toMatchObject({ unit: '%', lines: [{ label: 'AI share', color: 'ai', values: [25] }] });
    const views = linesOf(query, [{ day: '2026-11-02', human: 4, ai_views: 3, pages: 2, jobs: 1 }]);
    expect(views.lines.map(({ color }) => color)).toEqual(['human', 'ai', 'series-one', 'series-two']);
  });

  it('mark what happened on their days, and say so beside the values', () => {
    const on = (at: string) => ({ day: day(at), text: `News of ${at}`, isBreak: false });
    const { marks, points } = linesOf(ofHuman, daily(['2026-11-02', '2026-11-09']), [
      on('2026-12-24'),
      on('2026-11-11'),
      on('2026-11-03'),
    ]);
    expect(marks.map(({ letter, day }) => [letter, day])).toEqual([
      ['A', '2026-11-03'],
      ['B', '2026-11-11'],
    ]);
    expect(points[1]?.said).toEqual(['Nov 9 – 15, 2026', 'Human 1', 'B: News of 2026-11-11']);
  });
});

test('the column of days is the first with another day in each row, also as a timestamp at midnight', () => {
  const pointsOf = (values: readonly string[]) => linesOf(ofHuman, daily(values, 'any')).points.length;
  expect(pointsOf(['2026-11-01', '2026-11-02'])).toBe(2);
  expect(pointsOf(['2026-11-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'])).toBe(2);
  for (const values of [['2026-11-01', '2026-11-01'], ['2026-11-01T02:00:00.000Z'], ['/a']])
    expect(() => pointsOf(values)).toThrow(
      /^views\.sql: queries\.views: lines need a column with a different day/,
    );
});

test('of columns that are not named, those are drawn that one scale can show', () => {
  const labelsOf = (row: Row) => barsOf(query, [row], 'UTC').bars.map(({ label }) => label);
  expect(labelsOf({ path: '/', human: 4000, ai: 90, share: 0.02, note: 'x', gone: null })).toEqual([
    'Human',
    'AI',
  ]);
  expect(labelsOf(Object.fromEntries('abcdefgh'.split('').map((name) => [name, 1])))).toHaveLength(5);
});

test('bars show the first thirty rows, and the number of the others', () => {
  const rows = Array.from({ length: 40 }, (_, index) => ({ path: `/${index}`, human: index }));
  const chart = barsOf(query, rows, 'UTC');
  expect([chart.rows.length, chart.more, chart.rows[29]]).toEqual([30, 10, { label: '/29', values: [29] }]);
});
