import { type Day, startOfDay } from '../../day.js';
import type { PageDay } from './day-traffic.js';
import { fraction } from './random.js';

/**
 * Late data. Most views are counted while their day lasts; some arrive during the two days after it. What has
 * arrived changes on the hour only, so that the pages of one walk agree with each other.
 */

const HOUR_MS = 3_600_000;

/** After this many hours from its start a day is complete and never changes again. */
const SETTLED_HOURS = 72;

/** Hours from a day's start, and the part of its views that has arrived by then; straight lines between. */
const ARRIVALS: readonly (readonly [hours: number, share: number])[] = [
  [0, 0],
  [24, 0.97],
  [48, 0.995],
  [SETTLED_HOURS, 1],
];

/** Whole hours since `day` began, at most `SETTLED_HOURS`; negative before it began. */
export const hoursInto = (day: Day, now: Date): number =>
  Math.min(SETTLED_HOURS, Math.floor((now.getTime() - startOfDay(day).getTime()) / HOUR_MS));

/** The part of a day's views that has arrived `hours` after the day began. */
function arrivedShare(hours: number): number {
  const next = ARRIVALS.findIndex(([at]) => hours <= at);
  if (next === 0) return 0;
  const [from, to] = [ARRIVALS[next - 1], ARRIVALS[next]];
  if (from === undefined || to === undefined) return 1;
  return from[1] + ((to[1] - from[1]) * (hours - from[0])) / (to[0] - from[0]);
}

/** Each view has its own moment of arrival, so a page's count can only grow. */
function arrivedViews(views: number, share: number, ...keys: number[]): number {
  let arrived = 0;
  for (let view = 0; view < views; view += 1) if (fraction(...keys, view) < share) arrived += 1;
  return arrived;
}

/** What the server knows of a day `hours` after it began. A page none of whose views has arrived has no row. */
export function arrivedCounts(
  final: readonly PageDay[],
  seed: number,
  day: Day,
  hours: number,
): readonly PageDay[] {
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
