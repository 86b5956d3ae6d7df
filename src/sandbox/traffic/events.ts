import { fraction, hash, uniformFrom, wobble } from './random.js';
import type { Page } from './site.js';

/** What happens to one page apart from the site: launches, bursts, drift, and readers who leave. Factors on its views. */

export type Audience = 'human' | 'ai';

const BURST_WINDOW = 56;
const BURST_DAYS = { least: 4, most: 9 };
const BURST_CHANCE = 0.1;
/** The audience of a burst: people (a post is shared), AI (an agent framework links it), or both. */
const BURST_AUDIENCES: readonly (readonly Audience[])[] = [['human'], ['ai'], ['human', 'ai']];

/** A burst: for some days about three times the views. At most one a page in eight weeks. */
function burst(seed: number, page: Page, age: number, audience: Audience): number {
  const window = Math.floor(age / BURST_WINDOW);
  if (fraction(seed, page.key, window, 10) >= BURST_CHANCE) return 1;
  const choice = uniformFrom(seed, page.key, window, 11);
  const lastsDays = BURST_DAYS.least + Math.floor(choice() * (BURST_DAYS.most - BURST_DAYS.least + 1));
  const start = window * BURST_WINDOW + Math.floor(choice() * (BURST_WINDOW - lastsDays));
  const factor = 2.3 + 1.4 * choice();
  const audiences = BURST_AUDIENCES[hash(seed, page.key, window, 12) % BURST_AUDIENCES.length] ?? [];
  return age >= start && age < start + lastsDays && audiences.includes(audience) ? factor : 1;
}

/** A launch draws its crowd at once and loses most of it within weeks. */
function launch(page: Page, age: number): number {
  if (page.launchedAt === undefined) return 1;
  return page.lasting + (1 - page.lasting) * Math.exp(-(age - page.launchedAt) / 12);
}

/** A page that falls away keeps an eighth of its readers. */
function fading(page: Page, age: number): number {
  if (page.fadesAt === undefined || age < page.fadesAt) return 1;
  return 0.125 + 0.875 * Math.exp(-(age - page.fadesAt) / 8);
}

/** Weeks differ for reasons nobody knows. */
const drift = (seed: number, page: Page, age: number, audience: Audience): number =>
  wobble(0.08, uniformFrom(seed, page.key, Math.floor(age / 7), audience === 'ai' ? 21 : 20));

/** The page's views at `age` as a multiple of what its share of the site alone would give. */
export const eventFactor = (seed: number, page: Page, age: number, audience: Audience): number =>
  burst(seed, page, age, audience) * launch(page, age) * fading(page, age) * drift(seed, page, age, audience);
