import type { PageViews, ViewCounts } from '../../api/schema.js';
import { addDays, type Day, dayOf, type DayRange, daysIn, startOfDay } from '../../day.js';
import { finalCounts, type PageDay } from './day.js';
import { fraction } from './random.js';
import { createSite, type SiteOptions } from './site.js';

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

/** A bounded cache; past `limit` the oldest entry is dropped. */
function remembered<T>(limit: number): (key: string, make: () => T) => T {
  const kept = new Map<string, T>();
  return (key, make) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const made = make();
    kept.set(key, made);
    for (const oldest of kept.keys()) {
      if (kept.size <= limit) break;
      kept.delete(oldest);
    }
    return made;
  };
}

/** All views of a range of days: one row per page, most viewed first. */
export interface RangeViews {
  readonly totals: ViewCounts;
  readonly rows: readonly PageViews[];
}

/** A requested range; an undefined end is open. */
interface AskedRange {
  readonly from: Day | undefined;
  /** Exclusive. */
  readonly to: Day | undefined;
}

/** Bounds of the caches: three years of days, and the ranges of concurrent walks. */
const DAYS_KEPT = 1100;
const RANGES_KEPT = 64;

/** The days of the range that can have data. */
function daysWithData({ from, to }: AskedRange, firstDay: Day, now: Date): DayRange {
  const today = dayOf(now);
  const last = to === undefined ? today : addDays(to, -1);
  return {
    first: from === undefined || from < firstDay ? firstDay : from,
    last: last > today ? today : last,
  };
}

function sumPages(days: readonly (readonly PageDay[])[]): RangeViews {
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

export function createTraffic(options: SiteOptions) {
  const site = createSite(options);
  const finals = remembered<readonly PageDay[]>(DAYS_KEPT);
  const ranges = remembered<RangeViews>(RANGES_KEPT);

  const known = (day: Day, now: Date): readonly PageDay[] => {
    const final = finals(day, () => finalCounts(site, day));
    return arrivedCounts(final, site.seed, day, hoursInto(day, now));
  };
  return {
    /** The server's data of a range at `now`. Days before the first or after today have no data. */
    viewsIn: (asked: AskedRange, now: Date): RangeViews => {
      const { first, last } = daysWithData(asked, site.firstDay, now);
      // Counts change on the hour until a day is settled, so the hour of `last` identifies the state.
      return ranges(`${first} ${last} ${hoursInto(last, now)}`, () =>
        sumPages(daysIn({ first, last }).map((day) => known(day, now))),
      );
    },
  };
}

export type Traffic = ReturnType<typeof createTraffic>;
