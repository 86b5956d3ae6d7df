import { fraction, hash, uniformFrom, wobble } from './random.js';
import type { Page } from './site.js';

/** Sunday first, as `Date` counts weekdays. Each adds up to 7. */
const HUMAN_WEEK = [0.67, 1.13, 1.17, 1.16, 1.14, 1.05, 0.68];
const AI_WEEK = [0.9, 1.02, 1.05, 1.05, 1.04, 1.02, 0.92];

const inWeek = (week: readonly number[], weekday: number): number => week[weekday] ?? 1;

// The views of the whole site that are expected on a day, before noise. `age` is in days since its first day.

/** People: 2,560 a day, growing by a tenth over some years and then constant. */
export const humanViewsExpected = (age: number, weekday: number): number =>
  2560 * (1.12 - 0.12 * Math.exp(-age / 220)) * inWeek(HUMAN_WEEK, weekday);

/**
 * AI: from about a third of all views to more than people at the end of the first half year, then
 * leveling off at about 57% (logistic), so that a sandbox used for years stays plausible.
 */
export const aiViewsExpected = (age: number, weekday: number): number =>
  (1250 + 2450 / (1 + Math.exp(-(age - 153) / 30))) * inWeek(AI_WEEK, weekday);

export type Visitors = 'human' | 'ai';

const BURST_WINDOW = 56;
const BURST_DAYS = { least: 4, most: 9 };
const BURST_CHANCE = 0.1;
/** The audience of a burst: people (a post is shared), AI (an agent framework links it), or both. */
const BURST_AUDIENCES: readonly (readonly Visitors[])[] = [['human'], ['ai'], ['human', 'ai']];

/** A burst: for some days about three times the views. At most one a page in eight weeks. */
function burst(seed: number, page: Page, age: number, audience: Visitors): number {
  const window = Math.floor(age / BURST_WINDOW);
  if (fraction(seed, page.key, window, 10) >= BURST_CHANCE) return 1;
  const choice = uniformFrom(seed, page.key, window, 11);
  const lastsDays = BURST_DAYS.least + Math.floor(choice() * (BURST_DAYS.most - BURST_DAYS.least + 1));
  const start = window * BURST_WINDOW + Math.floor(choice() * (BURST_WINDOW - lastsDays));
  const factor = 2.3 + 1.4 * choice();
  const audiences = BURST_AUDIENCES[hash(seed, page.key, window, 12) % BURST_AUDIENCES.length] ?? [];
  return age >= start && age < start + lastsDays && audiences.includes(audience) ? factor : 1;
}

/** A new page attracts most readers at once and loses most of them within weeks. */
function launch(page: Page, age: number): number {
  if (page.launchedAt === undefined) return 1;
  return page.lasting + (1 - page.lasting) * Math.exp(-(age - page.launchedAt) / 12);
}

/** A fading page keeps an eighth of its readers. */
function fading(page: Page, age: number): number {
  if (page.fadesAt === undefined || age < page.fadesAt) return 1;
  return 0.125 + 0.875 * Math.exp(-(age - page.fadesAt) / 8);
}

/** A page that much is written about: from one day on, it has many more human views, which fade over months. */
const TALKED_ABOUT = { path: '/guides/webhooks', age: 204, human: 1.9, fadesInDays: 90 };

const talk = (page: Page, age: number, audience: Visitors): number =>
  page.path !== TALKED_ABOUT.path || age < TALKED_ABOUT.age || audience === 'ai'
    ? 1
    : 1 + (TALKED_ABOUT.human - 1) * Math.exp(-(age - TALKED_ABOUT.age) / TALKED_ABOUT.fadesInDays);

/** Weeks differ for unknown reasons. */
const drift = (seed: number, page: Page, age: number, audience: Visitors): number =>
  wobble(0.08, uniformFrom(seed, page.key, Math.floor(age / 7), audience === 'ai' ? 21 : 20));

/** The page's views at `age` as a multiple of what its share of the site's views would be. */
export const eventFactor = (seed: number, page: Page, age: number, audience: Visitors): number =>
  burst(seed, page, age, audience) *
  launch(page, age) *
  fading(page, age) *
  talk(page, age, audience) *
  drift(seed, page, age, audience);
