import { type Day, daysBetween, startOfDay } from '../../day.js';
import { type Audience, eventFactor } from './events.js';
import { poisson, uniformFrom, wobble } from './random.js';
import { aiViewsExpected, humanViewsExpected } from './seasons.js';
import type { Page, Site } from './site.js';

/** One page's views on one day. */
export interface PageDay {
  readonly path: string;
  readonly key: number;
  readonly human: number;
  readonly ai: number;
}

/** Noise of a whole day, and of one page on one day beyond pure chance (over-dispersion). */
const DAY_NOISE = 0.025;
const PAGE_NOISE = 0.14;

const STREAMS = { human: 30, ai: 31 } as const;

function sampler(site: Site, age: number, audience: Audience, siteViews: number, pages: readonly Page[]) {
  // What a launch draws comes on top of the site's season, not out of the other pages.
  const shares = pages.reduce((sum, page) => sum + page[audience] * page.lasting, 0);
  const perShare = (siteViews * wobble(DAY_NOISE, uniformFrom(site.seed, age, STREAMS[audience]))) / shares;
  return (page: Page): number => {
    const uniform = uniformFrom(site.seed, age, page.key, STREAMS[audience]);
    const expected = page[audience] * perShare * eventFactor(site.seed, page, age, audience);
    return poisson(expected * wobble(PAGE_NOISE, uniform), uniform);
  };
}

/** The final counts of a day, once everything late has arrived. A page nobody read has no row. */
export function finalCounts(site: Site, day: Day): PageDay[] {
  const age = daysBetween(site.firstDay, day);
  if (age < 0) return [];
  const weekday = startOfDay(day).getUTCDay();
  const pages = site.pagesAt(age);
  const human = sampler(site, age, 'human', humanViewsExpected(age, weekday), pages);
  const ai = sampler(site, age, 'ai', aiViewsExpected(age, weekday), pages);
  return pages
    .map((page) => ({ path: page.path, key: page.key, human: human(page), ai: ai(page) }))
    .filter((page) => page.human + page.ai > 0);
}
