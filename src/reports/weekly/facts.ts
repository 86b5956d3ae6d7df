import { addDays, type Day, daysBetween } from '../../day.js';
import { AUDIENCES, type Audience, otherThan } from '../../format/audience.js';
import { type AudienceWeek, type Burst, type Comparison, median } from './comparison.js';
import type { MovedRow } from './rows.js';

/** What made up most of a change: its share, or more than all of it if others fell. */
export interface Cause {
  readonly path?: string;
  readonly day?: Day;
  readonly share: number;
}

/** Something true of a week. `stake` is the number of views it is about. */
export type Fact = { readonly stake: number } & (
  | {
      readonly kind: 'change';
      readonly of: AudienceWeek;
      readonly now: number;
      readonly ratio: number;
      readonly cause: Cause | undefined;
    }
  | { readonly kind: 'outside'; readonly of: AudienceWeek; readonly low: number; readonly high: number }
  | {
      readonly kind: 'burst';
      readonly of: AudienceWeek;
      readonly burst: Burst;
      readonly path: string | undefined;
    }
  | {
      readonly kind: 'lead';
      readonly leads: Audience;
      readonly now: number;
      readonly others: number;
      readonly isAgain: boolean;
    }
  | { readonly kind: 'only'; readonly audience: Audience; readonly share: number }
  | { readonly kind: 'page'; readonly page: MovedPage }
);

export type MovedPage = Omit<MovedRow, 'weeks'>;

/** A fact that was also true of the week before, with whatever numbers, is not news. */
export function keyOf(fact: Fact): string {
  switch (fact.kind) {
    case 'change':
      return `change ${fact.of.audience} ${fact.ratio > 0 ? 'up' : 'down'}`;
    case 'outside':
      return `outside ${fact.of.audience} ${fact.of.place}`;
    case 'burst':
      return `burst ${fact.of.audience} ${fact.burst.day}`;
    case 'lead':
      return `lead ${fact.leads}`;
    case 'only':
      return `only ${fact.audience}`;
    case 'page':
      return `page ${fact.page.path}`;
  }
}

/** Smaller changes are not told. */
const NOTABLE_RATIO = 0.1;
const NOTABLE_RECORD = 0.05;
/** The same, while it is not known what is usual. */
const NOTABLE_BY_ITSELF = 0.25;
/** In standard deviations of chance alone. */
const BEYOND_CHANCE = 3;
const LEAST_VIEWS = 20;
/** As shares of the site's views: a change of all views, and of one page. */
const LEAST_STAKE = 0.02;
const LEAST_STAKE_OF_PAGE = 0.01;
/** An audience with a smaller share does not count. */
const LEAST_SHARE = 0.01;

/** Everything worth telling about a full week, the most views first. */
export function factsOf(week: Comparison, moved: readonly MovedPage[]): Fact[] {
  const { human, ai } = week.thisWeek;
  const found = [
    ...AUDIENCES.flatMap((audience) => [burstIn(week[audience]), changeOf(week[audience])]),
    leadOf(week),
    onlyOf(human, ai),
  ].filter((fact) => fact !== undefined);
  const told = new Set(
    found.flatMap((fact) =>
      fact.kind === 'change' ? fact.cause?.path : fact.kind === 'burst' ? fact.path : undefined,
    ),
  );
  const pages = moved.flatMap((page): Fact[] =>
    told.has(page.path) ? [] : [{ kind: 'page', page, stake: stakeOf(page) }],
  );
  const least = ({ kind }: Fact): number => (kind === 'page' ? LEAST_STAKE_OF_PAGE : LEAST_STAKE);
  return [...found, ...pages.slice(0, 1)]
    .filter((fact) => fact.stake >= Math.max(LEAST_VIEWS, least(fact) * (human + ai)))
    .sort((one, two) => two.stake - one.stake);
}

const stakeOf = ({ human, ai, human_expected, ai_expected }: MovedPage): number =>
  Math.abs(human - (human_expected ?? human)) + Math.abs(ai - (ai_expected ?? ai));

/** The cause of a burst or change: at least half of it. */
const MOST = 0.5;

function burstIn(of: AudienceWeek): Fact | undefined {
  const { burst } = of;
  if (burst === null) return undefined;
  const excess = burst.views - burst.usual;
  const at = daysBetween(of.firstDay, burst.day);
  const page = of.causes.find(({ days }) => (days[at + 7] ?? 0) - (days[at] ?? 0) >= MOST * excess);
  return { kind: 'burst', of, burst, path: page?.path, stake: excess };
}

/** A change beyond the usual range, or beyond chance while no range is known. */
function changeOf(of: AudienceWeek): Fact | undefined {
  const { same, place, usual, expected, views } = of;
  if (same === null) return undefined;
  const { now, before } = same;
  const difference = now - before;
  const ratio = before === 0 ? Infinity * Math.sign(now) : now / before - 1;
  const isUp = difference > 0;
  const isBeyond =
    Math.abs(difference) > BEYOND_CHANCE * Math.sqrt(now + before) &&
    (place === 'unknown'
      ? Math.abs(ratio) >= NOTABLE_BY_ITSELF
      : Math.abs(ratio) >= NOTABLE_RATIO && place === (isUp ? 'above' : 'below'));
  if (isBeyond)
    return { kind: 'change', of, now, ratio, cause: causeOf(of, difference), stake: Math.abs(difference) };
  if (usual === null || 'why' in usual || of.burst !== null || expected === null) return undefined;
  if (place !== 'above' && place !== 'below') return undefined;
  const distance = Math.abs(views / Math.max(1, expected) - 1);
  if (distance < (of.record === null ? NOTABLE_RATIO : NOTABLE_RECORD)) return undefined;
  return {
    kind: 'outside',
    of,
    low: usual.low,
    high: usual.high,
    stake: Math.abs(views - expected),
  };
}

/** The page, the day, or the day of the page, that makes up most of a change. */
function causeOf({ causes, days, leftOut, firstDay }: AudienceWeek, difference: number): Cause | undefined {
  const [page] = causes
    .map(({ path, days }) => ({ path, byDay: sharesOf(days, leftOut, difference) }))
    .sort((one, two) => sum(two.byDay) - sum(one.byDay));
  const isPage = page !== undefined && sum(page.byDay) >= MOST;
  const byDay = isPage ? page.byDay : sharesOf(days, leftOut, difference);
  const share = Math.max(...byDay);
  const ofDay = share >= MOST ? { day: addDays(firstDay, byDay.indexOf(share)), share } : undefined;
  return isPage ? { path: page.path, share: sum(page.byDay), ...ofDay } : ofDay;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The share of each weekday in a difference. */
const sharesOf = (days: readonly number[], leftOut: ReadonlySet<number>, difference: number): number[] =>
  Array.from({ length: 7 }, (_, at) =>
    leftOut.has(at) ? 0 : ((days[at + 7] ?? 0) - (days[at] ?? 0)) / difference,
  );

/** A lead smaller than this many standard deviations of it is a coin flip. */
const CLEAR_LEAD = 3;
const LEAST_LEAD = Math.log(1.05);
const CHANGES_LEAST = 3;

/** The standard deviation of a week: a step between two weeks varies by the root of two more. */
function spreadOf(weeks: readonly number[]): number {
  const steps = weeks.slice(1).map((value, index) => Math.abs(value - (weeks[index] ?? value)));
  return (1.4826 * median(steps)) / Math.SQRT2;
}

/** Who leads clearly in each of some weeks, newest first. */
function leadersOf(weeks: Comparison['typical']): (Audience | undefined)[] {
  const ratios = weeks.map(({ human, ai }) => Math.log((ai + 0.5) / (human + 0.5)));
  const spread = ratios.length <= CHANGES_LEAST ? Infinity : spreadOf(ratios);
  return weeks.map(({ human, ai }, index) => {
    const chance = Math.sqrt(1 / Math.max(1, human) + 1 / Math.max(1, ai));
    const ratio = ratios[index] ?? 0;
    if (Math.abs(ratio) <= Math.max(CLEAR_LEAD * Math.max(spread, chance), LEAST_LEAD)) return undefined;
    return ratio > 0 ? 'ai' : 'human';
  });
}

/** One audience overtook the other, by more than the difference usually varies. */
function leadOf({ typical, before, thisWeek }: Comparison): Fact | undefined {
  const [leads, ...earlier] = leadersOf(typical);
  const known = earlier.filter((leader) => leader !== undefined);
  if (leads === undefined || before === null || known[0] !== otherThan(leads)) return undefined;
  const [now, others] = [thisWeek[leads], thisWeek[otherThan(leads)]];
  // A burst may hide who leads on other days, and then the numbers would say otherwise.
  if (now <= others) return undefined;
  const shift = Math.abs(thisWeek.ai - thisWeek.human - (before.ai - before.human));
  return { kind: 'lead', leads, now, others, isAgain: known.includes(leads), stake: shift };
}

/** Only one audience views the site, or nearly. */
function onlyOf(human: number, ai: number): Fact | undefined {
  const audience = human > ai ? 'human' : 'ai';
  const share = Math.min(human, ai) / (human + ai);
  return share < LEAST_SHARE ? { kind: 'only', audience, share, stake: human + ai } : undefined;
}

const WEEKS_OF_COURSE = 9;
const ENDS = 3;
/** The share of a course that has been covered halfway. */
const LEAST_AT_HALF = 0.15;

/** A steady change over the quarter, from the median of its first three weeks to that of its last. */
export type Course = NonNullable<ReturnType<typeof courseOf>>;

/** The courses of people and AI, the larger one first. */
export const coursesOf = (week: Comparison): Course[] =>
  AUDIENCES.flatMap((audience) => courseOf(week, audience) ?? []).sort(
    (one, two) => Math.abs(two.to - two.from) - Math.abs(one.to - one.from),
  );

function courseOf({ typical }: Comparison, audience: Audience) {
  const views = typical.map((week) => week[audience]);
  if (views.length < WEEKS_OF_COURSE) return null;
  const noise = spreadOf(views.map((one) => Math.log(one + 0.5)));
  const [to, from] = [median(views.slice(0, ENDS)), median(views.slice(-ENDS))];
  const change = Math.log((to + 0.5) / (from + 0.5));
  // A step is news in its week, and not a course in those after it.
  const middle = median(views.slice(ENDS, -ENDS));
  const half = Math.log((middle + 0.5) / (from + 0.5)) / change;
  if (half < LEAST_AT_HALF || half > 1 - LEAST_AT_HALF) return null;
  if (Math.abs(change) < Math.max(Math.log(1 + NOTABLE_RATIO), BEYOND_CHANCE * noise)) return null;
  if (Math.abs(to - from) < LEAST_VIEWS || from < LEAST_VIEWS) return null;
  return { audience, from, to, ratio: to / from - 1, weeks: views.length };
}
