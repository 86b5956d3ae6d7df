import { describe, expect, it, test } from 'vitest';
import { type ChartValues, type LineChart, markedWith } from '../../src/charts/chart.js';
import { drawChart } from '../../src/charts/lines.js';
import { addDays, day } from '../../src/day.js';

const FIRST = day('2026-08-17');
const SIZES = ['page', 'tablet', 'phone', 'email'] as const;

const pointsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    const at = addDays(FIRST, index);
    return { first: at, last: at, said: [] };
  });

/** A chart of days with these lines, named A, B and so on. */
const chartOf = (lines: readonly ChartValues[], more: Partial<LineChart> = {}): LineChart => ({
  kind: 'lines',
  title: 'Views per day',
  unit: '',
  marks: [],
  shaded: null,
  points: pointsOf(lines[0]?.length ?? 0),
  lines: lines.map((values, index) => ({
    label: `Line ${index}`,
    color: index === 0 ? 'human' : 'ai',
    values,
  })),
  ...more,
});

const pathsOf = (svg: string): string[] =>
  [...svg.matchAll(/<path class="line" d="([^"]*)"/g)].map(([, d = '']) => d);
const textsOf = (svg: string) =>
  [...svg.matchAll(/<text x="([\d.-]+)" y="([\d.-]+)"[^>]* text-anchor="(\w+)"[^>]*>([^<]*)</g)].map(
    ([, x, y, anchor, words = '']) => ({ x: Number(x), y: Number(y), anchor, words }),
  );

/** The numbers of days above the scale, and the triangles, of 13 weeks with some high days of AI views. */
function above(high: Readonly<Record<number, number>>, human: Readonly<Record<number, number>> = {}) {
  const valuesOf = (usual: number, of: Readonly<Record<number, number>>) =>
    Array.from({ length: 91 }, (_, index) => of[index] ?? usual);
  return SIZES.map((size) => {
    const svg = drawChart(chartOf([valuesOf(1000, human), valuesOf(800, high)]), size);
    const numbers = textsOf(svg).filter(
      ({ words, anchor }) => /^[\d,]{5,}$/.test(words) && anchor !== 'middle',
    );
    const boxes = numbers.map(({ x, anchor, words }) => {
      const from = x - (anchor === 'end' ? 7 * words.length : 0);
      return { words, from, to: from + 7 * words.length };
    });
    for (const [, from] of svg.matchAll(/d="M([\d.]+) \d+h10l/g))
      for (const { words, ...box } of boxes)
        expect(box.to < Number(from) || Number(from) + 10 < box.from, `${words} on a triangle`).toBe(true);
    for (const one of boxes)
      for (const other of boxes.slice(boxes.indexOf(one) + 1))
        expect(one.to < other.from || other.to < one.from, `${one.words} on ${other.words}`).toBe(true);
    return { numbers: boxes.map(({ words }) => words), triangles: svg.match(/l-5 -8z/g)?.length };
  });
}

describe('days above the scale', () => {
  it.each([
    ['one', { 86: 60_000 }, {}, ['60,000']],
    ['two equal ones side by side', { 86: 60_000, 87: 60_000 }, {}, ['60,000']],
    ['the first and the last', { 0: 60_000, 90: 70_000 }, {}, ['70,000', '60,000']],
    ['both audiences on one day', { 86: 60_000 }, { 86: 9_000_000 }, ['9,000,000']],
    ['three in a row', { 40: 60_000, 41: 70_000, 42: 80_000 }, {}, ['80,000']],
  ])('%s: each has a triangle, and the highest of neighbors a number', (_, ai, human, numbers) => {
    const triangles = Object.keys(ai).length + Object.keys(human).length;
    expect(above(ai, human)).toEqual(SIZES.map(() => ({ numbers, triangles })));
  });
});

test('a day that is not loaded leaves a gap, and a day between two gaps is a dot', () => {
  const [path = ''] = pathsOf(drawChart(chartOf([[1, 2, null, 3, null, 4, 5]]), 'page'));
  expect(path.match(/M/g)).toHaveLength(3);
  expect(path).toMatch(/L[^M]*M[\d.,]+ZM[^M]*L[^M]*$/);
});

test('the average of seven days is bold, and missing where one of them is', () => {
  const values = Array.from({ length: 28 }, (_, index) => (index === 14 ? null : index));
  const lines = [{ label: 'Human', color: 'human', values, look: 'averaged' as const }];
  const chart = chartOf([values], { lines });
  const [daily = '', average = ''] = pathsOf(drawChart(chart, 'page'));
  const [placed, averaged] = [daily, average].map((path) => path.match(/[ML]/g)?.length);
  // Of 27 days, the first six have none, nor the seven whose average would include the missing one.
  expect([placed, averaged]).toEqual([27, 27 - 6 - 6]);
  // An email has only the average, so that its image is small.
  expect(pathsOf(drawChart(chart, 'email'))).toHaveLength(1);
  expect(textsOf(drawChart(chart, 'page')).map(({ words }) => words)).toContain('Human 24');
});

describe('the names of lines', () => {
  it.each([
    ['far apart', [100, 900]],
    ['equal', [100, 100, 100, 100, 100]],
    ['at both ends', [0, 1, 2, 998, 1000]],
  ])('do not overlap: %s', (_, ends) => {
    const chart = chartOf(ends.map((end) => [500, 500, end]));
    for (const size of SIZES) {
      const names = textsOf(drawChart(chart, size)).filter(({ words }) => words.startsWith('Line'));
      expect(names).toHaveLength(ends.length);
      for (const one of names)
        for (const other of names.slice(names.indexOf(one) + 1)) {
          const isBeside = Math.abs(one.x - other.x) >= 7 * Math.min(one.words.length, other.words.length);
          expect(isBeside || Math.abs(one.y - other.y) >= 17.9, `${one.words}, ${other.words}`).toBe(true);
        }
    }
  });

  it('end within the chart, however long', () => {
    const lines = [{ label: `/guides/${'long'.repeat(40)}/end`, color: 'series-one', values: [1, 2, 3] }];
    for (const size of SIZES) {
      const svg = drawChart(chartOf([[1, 2, 3]], { lines }), size);
      const width = Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1]);
      const name = textsOf(svg).find(({ words }) => words.startsWith('/guides'));
      expect(name?.words).toMatch(/^\/guides\/long.*….* 3$/);
      expect((name?.x ?? 0) + 6.5 * (name?.words.length ?? 0)).toBeLessThan(width);
    }
  });
});

describe('marks', () => {
  const marked = (...days: readonly number[]) => {
    const events = days.map((at) => ({ day: addDays(FIRST, at), text: `on day ${at}`, isBreak: at === 60 }));
    const chart = chartOf([Array.from({ length: 91 }, () => 10)], { marks: markedWith(events) });
    const svg = drawChart(chart, 'page');
    const letters = textsOf(svg).flatMap(({ words }) => (/^[A-Z]+(–[A-Z]+)?$/.test(words) ? words : []));
    return { letters, rules: [...svg.matchAll(/<path class="mark"[^>]*>/g)].map(([rule]) => rule) };
  };

  it('have letters in the order of their days, and those near each other one label', () => {
    expect(marked(80, 10, 12, 13).letters).toEqual(['A–C', 'D']);
  });

  it('of one day are one line, and one outside the chart is not drawn', () => {
    expect(marked(20, 20).rules).toHaveLength(1);
    expect(marked(-5, 200)).toEqual({ letters: [], rules: [] });
  });

  it('are dashed, except that a solid line says that counting changed', () => {
    const [note, change] = marked(10, 60).rules.map((rule) => rule.includes('dasharray'));
    expect([note, change]).toEqual([true, false]);
  });

  it('go on after Z', () => {
    const days = Array.from({ length: 28 }, (_, index) => 3 * index);
    const events = days.map((at) => ({ day: addDays(FIRST, at), text: '', isBreak: false }));
    expect(
      markedWith(events)
        .map(({ letter }) => letter)
        .slice(24),
    ).toEqual(['Y', 'Z', 'AA', 'AB']);
  });
});

test('the data is told in words: every point of a short chart, and ends and extremes of a long one', () => {
  const data = (values: ChartValues) => /<desc>([^<]*)/.exec(drawChart(chartOf([values]), 'phone'))?.[1];
  expect(data([1200, null, 7.25])).toBe('Line 0: 1,200 on Aug 17, 2026, 7.25 on Aug 19, 2026.');
  expect(data([null, null])).toBe('Line 0: nothing loaded.');
  const long = Array.from({ length: 30 }, (_, index) => (index === 9 ? 5000 : 40 + index));
  expect(data(long)).toBe('Line 0: 40 on Aug 17, 2026, 69 on Sep 15, 2026, between 40 and 5,000.');
});

test('names and titles are text, whatever they contain', () => {
  const lines = [{ label: '</text><script>', color: 'ai', values: [1] }];
  const svg = drawChart(chartOf([[1]], { title: 'a < b & c', lines }), 'page');
  expect(svg).not.toContain('<script>');
  expect(svg).toContain('<title>a &lt; b &amp; c</title>');
});
