import { expect, test } from 'vitest';
import type { BarChart } from '../../src/charts/chart.js';
import { drawChart } from '../../src/charts/lines.js';

const SIZES = ['page', 'tablet', 'phone', 'email'] as const;

const chartOf = (rows: BarChart['rows'], bars = ['human', 'ai']): BarChart => ({
  kind: 'bars',
  title: 'Sections',
  unit: '',
  more: 0,
  bars: bars.map((color) => ({ label: color, color })),
  rows,
});

const rectsOf = (svg: string) =>
  [...svg.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*fill="var\(--([a-z-]+)\)"/g)].map(
    ([, x, y, width, color]) => ({ x: Number(x), y: Number(y), width: Number(width), color }),
  );

test.each(SIZES)('all bars share one scale, and the smallest can be seen: %s', (size) => {
  const rows = [
    { label: '/guides', values: [1000, 500] },
    { label: '/sdks', values: [1, 0] },
  ];
  const svg = drawChart(chartOf(rows), size);
  const [one, half, least, none] = rectsOf(svg);
  expect((half?.width ?? 0) / (one?.width ?? 1)).toBeCloseTo(0.5, 2);
  expect([least?.width, none?.width]).toEqual([2, 0]);
  expect(new Set([one, half, least, none].map((bar) => bar?.x)).size).toBe(1);
  expect([one?.color, half?.color]).toEqual(['human', 'ai']);
  for (const words of ['/guides', '1,000', '500', 'human', 'ai']) expect(svg).toContain(`>${words}<`);
});

test.each(SIZES)('values below zero go to the left of zero, with room for their numbers: %s', (size) => {
  const rows = [100, -50, null].map((value, index) => ({ label: `/page-${index}`, values: [value] }));
  const svg = drawChart(chartOf(rows, ['series-one']), size);
  const [up, down] = rectsOf(svg);
  expect((down?.x ?? 0) + (down?.width ?? 0)).toBeCloseTo(up?.x ?? 0, 0);
  const [, x] = /<text x="([\d.]+)"[^>]* text-anchor="end">−50</.exec(svg) ?? [];
  expect(Number(x)).toBeGreaterThan(30);
  expect(svg).toContain('>–</text>');
});

test('a long label is cut in the middle, and beside its bars there is room for them', () => {
  const label = `/guides/${'long'.repeat(60)}/end`;
  for (const size of SIZES) {
    const svg = drawChart(chartOf([{ label, values: [5, 5] }]), size);
    expect(svg).toMatch(/>\/guides\/long[^<]*…[^<]*\/end</);
    expect(rectsOf(svg)[0]?.width).toBeGreaterThan(150);
  }
});

test('the data is told in words', () => {
  const rows = [{ label: '/a', values: [1234, null] }];
  const svg = drawChart({ ...chartOf(rows), more: 2 }, 'email');
  expect(svg).toContain('<desc>/a: human 1,234, ai –; and 2 more rows</desc>');
});
