import { addDays, day, type Day } from '../../src/day.js';

/** The week to examine, and the number of weeks before it. */
export const WEEK_START = day('2026-11-09');
const WEEKS_BEFORE = 8;

const PAGES = 400;
/** Pages that really move, for human and for AI views each. */
const PLANTED = 5;
/**
 * Planted pages have at least this many views in a normal week; changes of smaller ones are
 * undetectable.
 */
const PLANTED_VIEWS_LEAST = 100;
/**
 * Addresses that almost nobody views and a script hits hard on one or two days: traffic without
 * readers.
 */
const PROBED = 8;
const PROBED_WEEKLY = 0.2;

/**
 * Noise beyond chance, per page and day and per page and week. The same as in the sandbox's
 * traffic.
 */
const PAGE_NOISE = 0.14;
const DRIFT = 0.08;

type Audience = 'human' | 'ai';

export interface SimulatedSite {
  readonly views: readonly { day: Day; path: string; human: number; ai: number }[];
  /** Pages that really moved, such as `human /page-7`. */
  readonly planted: ReadonlySet<string>;
}

/**
 * A site whose page sizes follow Zipf's law, with a weekly pattern, growth, a last week with a
 * quarter more views everywhere, separate noise for every page, single-day bursts, and a few pages
 * whose readership really changed for the whole last week.
 */
export function simulateSite(seed: number): SimulatedSite {
  const random = generator(seed);
  const pages = [
    ...Array.from({ length: PAGES }, (_, rank) => ({
      path: `/page-${rank}`,
      weekly: { human: 6000 / (rank + 6) ** 1.05, ai: (5000 / (rank + 6) ** 1.05) * spread(random, 0.5) },
    })),
    ...Array.from({ length: PROBED }, (_, index) => ({
      path: `/probed-${index}`,
      weekly: { human: PROBED_WEEKLY, ai: PROBED_WEEKLY },
    })),
  ];
  const factors = plant(random, pages);
  const probes = pages.map(({ path }) => ({
    first: Math.floor(random() * 6),
    days: 1 + Math.floor(random() * 2),
    views: path.startsWith('/probed') ? 60 + 200 * random() : 0,
  }));

  const views: { day: Day; path: string; human: number; ai: number }[] = [];
  for (let week = -WEEKS_BEFORE; week <= 0; week += 1) {
    const season = week === 0 ? 1.25 : spread(random, 0.04);
    const level = { human: season, ai: season * 1.03 ** week };
    const drifts = pages.map(() => ({ human: spread(random, DRIFT), ai: spread(random, DRIFT) }));
    for (let weekday = 0; weekday < 7; weekday += 1) {
      const at = addDays(WEEK_START, 7 * week + weekday);
      const rhythm = weekday < 5 ? 1.2 : 0.5;
      for (const [index, page] of pages.entries()) {
        const probe = probes[index];
        const isProbed =
          week === 0 && probe !== undefined && weekday >= probe.first && weekday < probe.first + probe.days;
        const count = (audience: Audience): number => {
          const moved = week === 0 ? (factors.get(`${audience} ${page.path}`) ?? 1) : 1;
          const drift = drifts[index]?.[audience] ?? 1;
          const expected = (page.weekly[audience] / 7) * rhythm * level[audience] * drift * moved;
          return poisson(random, expected * spread(random, PAGE_NOISE) + (isProbed ? probe.views : 0));
        };
        const [human, ai] = [count('human'), count('ai')];
        if (human + ai > 0) views.push({ day: at, path: page.path, human, ai });
      }
    }
  }
  return { views, planted: new Set(factors.keys()) };
}

/**
 * Chooses the pages that really move and their factors: up to double or triple, or down to half or
 * less.
 */
function plant(
  random: () => number,
  pages: readonly { path: string; weekly: Record<Audience, number> }[],
): Map<string, number> {
  const factors = new Map<string, number>();
  for (const audience of ['human', 'ai'] as const) {
    const large = pages.filter(({ weekly }) => weekly[audience] >= PLANTED_VIEWS_LEAST);
    while ([...factors.keys()].filter((key) => key.startsWith(audience)).length < PLANTED) {
      const page = large[Math.floor(random() * large.length)];
      const factor = random() < 0.6 ? 1.8 + 1.2 * random() : 0.15 + 0.35 * random();
      if (page !== undefined) factors.set(`${audience} ${page.path}`, factor);
    }
  }
  return factors;
}

/** Numbers from 0 to 1, always the same for a given seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const normal = (random: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** A factor around 1 whose logarithm is normal. */
const spread = (random: () => number, deviation: number): number => Math.exp(deviation * normal(random));

function poisson(random: () => number, mean: number): number {
  if (mean > 60) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  const limit = Math.exp(-mean);
  let count = 0;
  for (let product = random(); product > limit; product *= random()) count += 1;
  return count;
}
