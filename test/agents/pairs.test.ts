import { describe, expect, test } from 'vitest';
import { day } from '../../src/day.js';
import { drawPairs, type PairCandidate } from '../../src/agents/pairs.js';

/** Weekly views, from the first to the last of eight weeks. */
interface Reading {
  readonly human: number[];
  readonly ai?: number[];
}
const page = (path: string, { human, ai = human }: Reading): PairCandidate => {
  const at = ([first = 0, last = first]: number[], week: number) =>
    Math.round(first + ((last - first) * week) / 7);
  return {
    path,
    weeks: Array.from({ length: 8 }, (_, index) => {
      return { week: day('2026-09-14'), human: at(human, index), ai: at(ai, index) };
    }),
  };
};
const pathsOf = (pages: readonly PairCandidate[], count: number, seed = 'seed') =>
  drawPairs(pages, count, seed).map(({ treated, heldOut }) => [treated, heldOut].sort().join(' '));

describe('twins', () => {
  test.each<[by: string, pages: Record<string, Reading>, pairs: string[]]>([
    ['level', { a: { human: [900] }, b: { human: [300] }, c: { human: [850] } }, ['/a /c']],
    ['course', { a: { human: [400] }, b: { human: [600, 200] }, c: { human: [420] } }, ['/a /c']],
    ['growth', { a: { human: [100, 900] }, b: { human: [900, 100] }, c: { human: [300, 2700] } }, ['/a /c']],
    [
      'AI views',
      { a: { human: [400], ai: [50] }, b: { human: [400], ai: [500] }, c: { human: [500], ai: [60] } },
      ['/a /c'],
    ],
    ['few views', { a: { human: [0] }, b: { human: [1] }, c: { human: [9] } }, ['/a /b']],
  ])('have the most similar %s, by priority', (_, readings, pairs) => {
    const pages = Object.entries(readings).map(([name, reading]) => page(`/${name}`, reading));
    expect(pathsOf(pages, pairs.length)).toEqual(pairs);
  });

  test('are different pages, as many pairs as asked for or as there are twins', () => {
    const pages = Array.from({ length: 7 }, (_, index) => page(`/${index}`, { human: [900 - index] }));
    expect(drawPairs(pages, 2, 'seed')).toHaveLength(2);
    const all = drawPairs(pages, 9, 'seed').flatMap(({ treated, heldOut }) => [treated, heldOut]);
    expect(all).toHaveLength(6);
    expect(new Set(all).size).toBe(6);
    expect(drawPairs(pages.slice(0, 1), 5, 'seed')).toEqual([]);
    expect(drawPairs([], 5, 'seed')).toEqual([]);
    const none = { path: '/none', weeks: [] };
    expect(drawPairs([page('/new', { human: [0] }), none], 1, 'seed')).toHaveLength(1);
  });

  test('are drawn by a fair coin that the seed and the paths decide, not their order', () => {
    const [one, other] = [page('/one', { human: [500] }), page('/other', { human: [400] })];
    const drawn = Array.from({ length: 400 }, (_, seed) => drawPairs([one, other], 1, `${seed}`)[0]?.treated);
    expect(drawn.filter((path) => path === '/one').length).toBeGreaterThan(160);
    expect(drawn.filter((path) => path === '/one').length).toBeLessThan(240);
    // Recorded draws can be repeated, also by later versions.
    expect(drawn.slice(1, 5)).toEqual(['/one', '/other', '/other', '/one']);
    expect(drawn).toEqual(drawn.map((_, seed) => drawPairs([other, one], 1, `${seed}`)[0]?.treated));
  });
});
