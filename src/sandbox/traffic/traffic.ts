import { addDays, type Day, dayOf, type DayRange, daysIn } from '../../day.js';
import type { PageViews, ViewCounts } from '../../api/schema.js';
import { type PageDay, finalCounts } from './day-traffic.js';
import { remembered } from './remembered.js';
import { arrivedCounts, hoursInto } from './settling.js';
import { createSite, type SiteOptions } from './site.js';

/** All the views of a range of days: one row a page, most read first. */
export interface RangeViews {
  readonly totals: ViewCounts;
  readonly rows: readonly PageViews[];
}

/** A range as a caller asks for it; an end left out is open. */
interface AskedRange {
  readonly from: Day | undefined;
  /** Exclusive. */
  readonly to: Day | undefined;
}

export interface Traffic {
  /** What the server knows at `now` of the days asked for. Days before the first or after today have no data. */
  readonly viewsIn: (asked: AskedRange, now: Date) => RangeViews;
}

/** Bounds of the memory: three years of days, and the ranges that concurrent walks are in the middle of. */
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

export function createTraffic(options: SiteOptions): Traffic {
  const site = createSite(options);
  const finals = remembered<readonly PageDay[]>(DAYS_KEPT);
  const ranges = remembered<RangeViews>(RANGES_KEPT);

  const known = (day: Day, now: Date): readonly PageDay[] => {
    const final = finals(day, () => finalCounts(site, day));
    return arrivedCounts(final, site.seed, day, hoursInto(day, now));
  };
  return {
    viewsIn: (asked, now) => {
      const { first, last } = daysWithData(asked, site.firstDay, now);
      // What has arrived changes on the hour, settled days never: an hour of `last` names the state of the range.
      return ranges(`${first} ${last} ${hoursInto(last, now)}`, () =>
        sumPages(daysIn({ first, last }).map((day) => known(day, now))),
      );
    },
  };
}
