import { describe, expect, it } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { lineChart } from '../../src/reports/chart.js';

const FIRST = day('2026-08-17');

/** The numbers of days above the scale, and the triangles, of 13 weeks with some high days of AI views. */
function above(high: Readonly<Record<number, number>>, human: Readonly<Record<number, number>> = {}) {
  const days = Array.from({ length: 91 }, (_, index) => ({
    day: addDays(FIRST, index),
    human: human[index] ?? 1000,
    ai: high[index] ?? 800,
    letters: '',
  }));
  return (['page', 'phone', 'email'] as const).map((size) => {
    const svg = lineChart(days, { title: '', size, reported: 7 });
    const numbers = [...svg.matchAll(/<text x="([\d.]+)"[^>]* text-anchor="(start|end)">([\d,]{5,})</g)];
    const boxes = numbers.map(([, x, anchor, text = '']) => {
      const from = Number(x) - (anchor === 'end' ? 7 * text.length : 0);
      return { text, from, to: from + 7 * text.length };
    });
    for (const [, from] of svg.matchAll(/d="M([\d.]+) \d+h10l/g))
      for (const { text, ...box } of boxes)
        expect(box.to < Number(from) || Number(from) + 10 < box.from, `${text} on a triangle`).toBe(true);
    for (const one of boxes)
      for (const other of boxes.slice(boxes.indexOf(one) + 1))
        expect(one.to < other.from || other.to < one.from, `${one.text} on ${other.text}`).toBe(true);
    return { numbers: boxes.map(({ text }) => text), triangles: svg.match(/l-5 -8z/g)?.length };
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
    expect(above(ai, human)).toEqual(Array.from({ length: 3 }, () => ({ numbers, triangles })));
  });
});
