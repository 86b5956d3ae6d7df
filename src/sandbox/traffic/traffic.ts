import { LRUCache } from 'lru-cache';
import { addDays, type Day, dayOf, daysBetween, daysIn, startOfDay } from '../../day.js';
import { aiViewsExpected, eventFactor, humanViewsExpected, type Visitors } from './expected.js';
import { fraction, poisson, uniformFrom, wobble } from './random.js';
import { createSite, type Page, type Site, type SiteOptions } from './site.js';

/** One page's views on one day. */
type PageDay = Pick<Page, 'path' | 'key' | Visitors>;

/** Noise of a whole day, and of one page on one day beyond pure chance (overdispersion). */
const DAY_NOISE = 0.025;
const PAGE_NOISE = 0.14;

const STREAMS = { human: 30, ai: 31 } as const;

function sampler(site: Site, age: number, audience: Visitors, siteViews: number, pages: readonly Page[]) {
  // Views of a new page are added to the site's, not taken from other pages.
  const shares = pages.reduce((sum, page) => sum + page[audience] * page.lasting, 0);
  const perShare = (siteViews * wobble(DAY_NOISE, uniformFrom(site.seed, age, STREAMS[audience]))) / shares;
  return (page: Page, factor: number): number => {
    const uniform = uniformFrom(site.seed, age, page.key, STREAMS[audience]);
    const expected = factor * page[audience] * perShare * eventFactor(site.seed, page, age, audience);
    return poisson(expected * wobble(PAGE_NOISE, uniform), uniform);
  };
}

/** The views of a page that an agent improved, from the day of the merge, as multiples. */
const IMPROVED = { human: 1.3, ai: 1.15 };

/** Until this age of the site, some views by AI were counted as human: a change of what is counted. */
const COUNTING_CHANGED_AT = 21;
const MISCOUNTED = 0.12;

/** What happened outside, as notes for `notes.yaml`. */
export const simulatedNotes = (firstDay: Day) => [
  {
    date: addDays(firstDay, COUNTING_CHANGED_AT),
    text: 'Simulated: AI browsers count as AI, and no longer as people',
    break: true,
  },
  { date: addDays(firstDay, 120), text: 'Simulated: a talk at a conference shows the quickstart' },
];

/** When the pages that agents improved were merged, by path. */
export type Improvements = ReadonlyMap<string, Day>;

/** The final counts of a day, once all late data has arrived. A page without views has no row. */
function finalCounts(site: Site, day: Day, improvements: Improvements): PageDay[] {
  const age = daysBetween(site.firstDay, day);
  if (age < 0) return [];
  const weekday = startOfDay(day).getUTCDay();
  const pages = site.pagesAt(age);
  const human = sampler(site, age, 'human', humanViewsExpected(age, weekday), pages);
  const ai = sampler(site, age, 'ai', aiViewsExpected(age, weekday), pages);
  return pages
    .map((page) => {
      const mergedOn = improvements.get(page.path);
      const factor = mergedOn === undefined || day < mergedOn ? { human: 1, ai: 1 } : IMPROVED;
      const counts = { human: human(page, factor.human), ai: ai(page, factor.ai) };
      const moved = age < COUNTING_CHANGED_AT ? Math.round(counts.ai * MISCOUNTED) : 0;
      return { path: page.path, key: page.key, human: counts.human + moved, ai: counts.ai - moved };
    })
    .filter((page) => page.human + page.ai > 0);
}

// Late data: most views are counted on their day, and some arrive in the following two days. Counts
// change only on the hour, so that the pages of one walk agree with each other.

const HOUR_MS = 3_600_000;

/** A day is complete this many hours after its start, and never changes again. */
const SETTLED_HOURS = 72;

/** Hours since the start of a day, and the share of its views that has arrived; interpolated linearly. */
const ARRIVALS: readonly (readonly [hours: number, share: number])[] = [
  [0, 0],
  [24, 0.97],
  [48, 0.995],
  [SETTLED_HOURS, 1],
];

/** Whole hours since `day` began, at most `SETTLED_HOURS`; negative before it began. */
const hoursInto = (day: Day, now: Date): number =>
  Math.min(SETTLED_HOURS, Math.floor((now.getTime() - startOfDay(day).getTime()) / HOUR_MS));

/** The share of a day's views that has arrived `hours` after the day began. */
function arrivedShare(hours: number): number {
  const next = ARRIVALS.findIndex(([at]) => hours <= at);
  if (next === 0) return 0;
  const [from, to] = [ARRIVALS[next - 1], ARRIVALS[next]];
  if (from === undefined || to === undefined) return 1;
  return from[1] + ((to[1] - from[1]) * (hours - from[0])) / (to[0] - from[0]);
}

/** Each view has its own time of arrival, so a page's count can only grow. */
function arrivedViews(views: number, share: number, ...keys: number[]): number {
  let arrived = 0;
  for (let view = 0; view < views; view += 1) if (fraction(...keys, view) < share) arrived += 1;
  return arrived;
}

/** The server's data of a day `hours` after it began. A page without any arrived view has no row. */
function arrivedCounts(final: readonly PageDay[], seed: number, day: Day, hours: number): readonly PageDay[] {
  if (hours >= SETTLED_HOURS) return final;
  const share = arrivedShare(hours);
  const start = startOfDay(day).getTime() / HOUR_MS;
  return final
    .map((page) => ({
      ...page,
      human: arrivedViews(page.human, share, seed, start, page.key, 0),
      ai: arrivedViews(page.ai, share, seed, start, page.key, 1),
    }))
    .filter((page) => page.human + page.ai > 0);
}

/** All views of a range of days: one row per page, most viewed first. */
export type RangeViews = ReturnType<typeof sumPages>;

/** A requested range; `to` is exclusive, and an undefined end is open. */
interface AskedRange {
  readonly from: Day | undefined;
  readonly to: Day | undefined;
}

/** Three years of days are kept. */
const DAYS_KEPT = 1100;

function sumPages(days: readonly (readonly PageDay[])[]) {
  const pages = new Map<string, { path: string; human: number; ai: number; total: number }>();
  const totals = { human: 0, ai: 0, total: 0 };
  for (const { path, human, ai } of days.flat()) {
    const page = pages.get(path) ?? { path, human: 0, ai: 0, total: 0 };
    pages.set(path, page);
    for (const counts of [page, totals]) {
      counts.human += human;
      counts.ai += ai;
      counts.total += human + ai;
    }
  }
  const rows = [...pages.values()].sort((a, b) => b.total - a.total || (a.path < b.path ? -1 : 1));
  return { totals, rows };
}

export function createTraffic(options: SiteOptions, improvements: () => Improvements = () => new Map()) {
  const site = createSite(options);
  const finals = new LRUCache<Day, readonly PageDay[]>({
    max: DAYS_KEPT,
    memoMethod: (day) => finalCounts(site, day, improvements()),
  });
  return {
    /** The server's data of a range at `now`. Days before the first or after today have no data. */
    viewsIn: ({ from = site.firstDay, to }: AskedRange, now: Date): RangeViews => {
      const today = dayOf(now);
      const first = from < site.firstDay ? site.firstDay : from;
      const last = to === undefined || to > today ? today : addDays(to, -1);
      return sumPages(
        daysIn({ first, last }).map((day) =>
          arrivedCounts(finals.memo(day), site.seed, day, hoursInto(day, now)),
        ),
      );
    },
  };
}

export type Traffic = ReturnType<typeof createTraffic>;
