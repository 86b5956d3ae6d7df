import { describe, expect, test } from 'vitest';
import { day } from '../../src/day.js';
import { drawPairs, type PairCandidate } from '../../src/agents/pairs.js';

/** A page whose weekly views go from `first` to `last` in eight weeks. */
const page = (
  path: string,
  { human, ai = human, leaving = false }: Record<'human', number[]> & { ai?: number[]; leaving?: boolean },
): PairCandidate => {
  const at = ([first = 0, last = first]: number[], week: number) =>
    Math.round(first + ((last - first) * week) / 7);
  return {
    path,
    weeks: Array.from({ length: 8 }, (_, week) => ({
      week: day('2026-09-14'),
      human: at(human, week),
      ai: at(ai, week),
    })),
    leaving: leaving ? { human_change: -0.3, ai_change: 0 } : null,
  };
};
const pathsOf = (pages: readonly PairCandidate[], count: number, seed = 'seed') =>
  drawPairs(pages, count, seed).map(({ treated, heldOut }) => [treated, heldOut].sort().join(' '));

describe('twins', () => {
  test('have the most similar level, course and reason, by priority', () => {
    expect(
      pathsOf([page('/a', { human: [900] }), page('/b', { human: [300] }), page('/c', { human: [850] })], 1),
    ).toEqual(['/a /c']);
    expect(
      pathsOf(
        [page('/a', { human: [400] }), page('/b', { human: [600, 200] }), page('/c', { human: [420] })],
        1,
      ),
    ).toEqual(['/a /c']);
    const [grew, fell] = [page('/a', { human: [100, 900] }), page('/b', { human: [900, 100] })];
    const grewAsWell = page('/c', { human: [300, 2700] });
    expect(pathsOf([grew, fell, grewAsWell], 1)).toEqual(['/a /c']);
    expect(
      pathsOf(
        [
          page('/a', { human: [400], ai: [50] }),
          page('/b', { human: [400], ai: [500] }),
          page('/c', { human: [500], ai: [60] }),
        ],
        1,
      ),
    ).toEqual(['/a /c']);
    const leaving = true;
    const four = [
      page('/a', { human: [400], leaving }),
      page('/b', { human: [400] }),
      page('/c', { human: [700], leaving }),
      page('/d', { human: [800] }),
    ];
    expect(pathsOf(four, 2)).toEqual(['/a /c', '/b /d']);
    const unread = [0, 1, 9].map((views) => page(`/${views}`, { human: [views] }));
    expect(pathsOf(unread, 1)).toEqual(['/0 /1']);
  });

  test('are different pages, as many pairs as asked for or as there are twins', () => {
    const pages = Array.from({ length: 7 }, (_, index) => page(`/${index}`, { human: [900 - index] }));
    expect(drawPairs(pages, 2, 'seed')).toHaveLength(2);
    const all = drawPairs(pages, 9, 'seed').flatMap(({ treated, heldOut }) => [treated, heldOut]);
    expect(all).toHaveLength(6);
    expect(new Set(all).size).toBe(6);
    expect(drawPairs(pages.slice(0, 1), 5, 'seed')).toEqual([]);
    expect(drawPairs([], 5, 'seed')).toEqual([]);
    expect(
      drawPairs([page('/new', { human: [0] }), { path: '/none', weeks: [], leaving: null }], 1, 'seed'),
    ).toHaveLength(1);
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
