import { type BeforeAfter, type Effect, measureEffect } from '../../src/agents/effect.js';
import { poisson, type Uniform, uniformFrom, wobble } from '../../src/sandbox/traffic/random.js';

/** How volatile a site's pages are. */
export interface Restlessness {
  /** Weekly drift of a page's trend, as a standard deviation of its logarithm. */
  readonly drift: number;
  /** Noise of a single week around that trend, likewise. */
  readonly noise: number;
  /** Share of weeks in which a page gets a burst of two to four times its views. */
  readonly bursts: number;
}

export const CALM: Restlessness = { drift: 0.02, noise: 0.06, bursts: 0.002 };
export const LIVELY: Restlessness = { drift: 0.05, noise: 0.15, bursts: 0.02 };

const PAGES = 200;
const WEEKS = { chosenOn: 8, before: 4, change: 1, after: 4 };
const TOTAL_WEEKS = WEEKS.chosenOn + WEEKS.change + WEEKS.after;
const COMPARISON_PAGES = 39;
const CHOSEN_FROM = 20;
const MIN_BEFORE = 28;

/**
 * A site whose page sizes follow Zipf's law and whose traffic grows, drifts and bursts. One of its
 * most viewed pages by median week is selected, as `improve` does; after its change it gets
 * `trueRatio` times the views. Returns the measured effect.
 */
export function effectOfChange(seed: number, restlessness: Restlessness, trueRatio: number): Effect {
  const uniform = uniformFrom(seed);
  const growth = 1 + 0.04 * (uniform() - 0.5);
  const pages = Array.from({ length: PAGES }, (_, rank) => weeklyViews(rank, growth, restlessness, uniform));
  const ranked = pages
    .map((weeks) => ({ weeks, sustained: median(weeks.slice(0, WEEKS.chosenOn)) }))
    .sort((one, other) => other.sustained - one.sustained)
    .map(({ weeks }) => windows(weeks));
  const chosen = ranked[Math.floor(uniform() * CHOSEN_FROM)] ?? { before: 0, after: 0 };
  return measureEffect({
    ...{ weeks_before: 4, weeks_after: 4, views_before: chosen.before },
    views_after: Math.round(chosen.after * trueRatio),
    comparison: nearest(
      ranked.filter((page) => page !== chosen && page.before >= MIN_BEFORE),
      chosen.before,
    ),
  });
}

function weeklyViews(rank: number, growth: number, site: Restlessness, uniform: Uniform): number[] {
  let mean = 3000 / (rank + 2) ** 0.92;
  return Array.from({ length: TOTAL_WEEKS }, () => {
    mean *= growth * wobble(site.drift, uniform);
    const burst = uniform() < site.bursts ? 2 + 2 * uniform() : 1;
    return poisson(mean * burst * wobble(site.noise, uniform), uniform);
  });
}

/**
 * Like the view `job_effects`: the four weeks before the week of the change, and the four after it.
 */
const windows = (weeks: readonly number[]): BeforeAfter => ({
  before: sum(weeks.slice(WEEKS.chosenOn - WEEKS.before, WEEKS.chosenOn)),
  after: sum(weeks.slice(-WEEKS.after)),
});

/** Like the view `job_effects`: the pages with the most similar views before the change. */
const nearest = (pages: readonly BeforeAfter[], before: number): BeforeAfter[] =>
  pages
    .map((page) => ({ page, distance: Math.abs(Math.log(page.before / before)) }))
    .sort((one, other) => one.distance - other.distance)
    .slice(0, COMPARISON_PAGES)
    .map(({ page }) => page);

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return (
    ((sorted[Math.floor((sorted.length - 1) / 2)] ?? 0) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0)) /
    2
  );
}
