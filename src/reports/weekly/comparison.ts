import { addDays, type Day, daysBetween } from '../../day.js';
import { AUDIENCES, type Audience } from '../../format/audience.js';
import type { DayRow, UsualRow, WeeklyRows, WeekRow } from './rows.js';

/** What a week is compared by. Weeks and days oldest first. */
export type WeekRows = Pick<WeeklyRows, 'weeks' | 'daily_views' | 'usual' | 'causes' | 'notes'>;

/** A week and the weeks before it. A full week has all seven days loaded; what it is compared with has no outage either. */
export type WeekComparison = NonNullable<ReturnType<typeof compareWeeks>>;
export type AudienceWeek = ReturnType<typeof audienceWeek>;

/** Compares the week that begins on `firstDay`; null if none of its days is loaded. */
export function compareWeeks(history: WeekRows, firstDay: Day) {
  const { weeks } = history;
  const isFull = (week: WeekRow): boolean => week.days_loaded === 7;
  const isBasis = (week: WeekRow): boolean => isFull(week) && week.outages.length === 0;
  const thisWeek = weeks.find(({ week }) => week === firstDay);
  if (thisWeek === undefined) return null;
  const weekBefore = weeks.find(({ week }) => week === addDays(firstDay, -7)) ?? null;
  const broken = history.notes
    .filter(({ day, path, is_break }) => is_break && path === '*' && day <= addDays(firstDay, 6))
    .at(-1);
  const earlier = weeks
    .filter((row) => row.week < firstDay && row.week >= (broken?.day ?? row.week) && isBasis(row))
    .toReversed();
  const withoutGap = earlier.filter(({ week }, index) => week === addDays(firstDay, -7 * (index + 1)));
  const isComparable = isFull(thisWeek) && weekBefore !== null && isBasis(weekBefore);
  const isAcrossBreak = broken !== undefined && broken.day > addDays(firstDay, -7);
  const before = isComparable && !isAcrossBreak ? weekBefore : null;
  const bursts = AUDIENCES.flatMap((audience) => burstsOf(history.daily_views, audience));
  const weekOf = (audience: Audience) => audienceWeek(history, audience, thisWeek, before !== null, bursts);
  return {
    thisWeek,
    /** The week before, full or not; null if none of its days is loaded. */
    weekBefore,
    /** The week before, if it and this week are full, and it has no outage: the basis for changes. */
    before,
    /** The break across which the week is not compared with the one before. */
    broken: isComparable && isAcrossBreak ? broken : null,
    /** Earlier full weeks without an outage since the last break, newest first. */
    earlier,
    /** Why nothing is called usual; null if enough weeks show it, or if the history is too young. */
    tooFewWeeks: isFull(thisWeek) ? tooFewWeeks(history, earlier, firstDay, broken?.day) : null,
    /** This week and those before it without a gap or break, newest first, without bursts. */
    typical: [thisWeek, ...withoutGap].map((week) => withoutBursts(week, bursts)),
    human: weekOf('human'),
    ai: weekOf('ai'),
  };
}

/** As in the macro `usual_range`. */
const WEEKS_BEFORE = 12;
const WEEKS_LEAST = 8;

/** How many of the weeks before cannot show what is usual, where they would be enough otherwise; null elsewhere. */
function tooFewWeeks({ weeks }: WeekRows, earlier: readonly WeekRow[], firstDay: Day, brokenOn?: Day) {
  const farthest = addDays(firstDay, -7 * WEEKS_BEFORE);
  const since = [farthest, weeks[0]?.week ?? firstDay, brokenOn ?? farthest].toSorted().at(-1) ?? firstDay;
  const all = Math.floor(daysBetween(since, firstDay) / 7);
  const before = weeks.filter(({ week }) => week >= since && week < firstDay);
  const left = earlier.filter(({ week }) => week >= since).length;
  if (left >= WEEKS_LEAST || all < WEEKS_LEAST) return null;
  const withOutage = before.filter(({ outages }) => outages.length > 0).length;
  return { left, withOutage, notLoaded: all - left - withOutage };
}

const BURST_TIMES = 3;
const BURST_LEAST = 100;
/** In median distances of days from the middle one. */
const BURST_DISTANCE = 12;
/** More such days in a week are a change, not a burst. */
const BURST_DAYS = 2;
/** The usual views of a weekday are its median in as many weeks before and after. */
const WEEKS_AROUND = 4;

type Burst = ReturnType<typeof burstsOf>[number];

/** Days on which an audience had many times its usual views: those of such a weekday in the weeks around it. */
function burstsOf(days: readonly DayRow[], audience: Audience) {
  const viewsOn = (day: DayRow) => (day.is_outage ? [] : (day[audience] ?? []));
  const known = days.flatMap(viewsOn);
  const middle = median(known);
  const distance = median(known.map((views) => Math.abs(views - middle)));
  const found = days.flatMap(({ day, [audience]: views }, index) => {
    const isAround = (days: number) => days !== 0 && days % 7 === 0 && Math.abs(days) <= 7 * WEEKS_AROUND;
    const around = days.filter((_, at) => isAround(at - index));
    const others = around.flatMap(viewsOn);
    if (views === null || others.length < 3) return [];
    const usual = Math.round(median(others));
    const least = Math.max(BURST_LEAST, BURST_DISTANCE * distance);
    return views > BURST_TIMES * usual && views - usual >= least
      ? [{ audience, day, views, usual, week: Math.floor(index / 7) }]
      : [];
  });
  return found.filter((one) => found.filter(({ week }) => week === one.week).length <= BURST_DAYS);
}

/** A week as it would have been if each burst had been a usual day. */
function withoutBursts({ week, human, ai }: WeekRow, bursts: readonly Burst[]) {
  const excess = (audience: Audience): number =>
    bursts
      .filter((burst) => burst.audience === audience && burst.day >= week && burst.day < addDays(week, 7))
      .reduce((sum, { views, usual }) => sum + views - usual, 0);
  return { week, human: human - excess('human'), ai: ai - excess('ai') };
}

/** The views of an audience, and what they can be compared with. */
function audienceWeek(
  { daily_views, usual: usualRows, causes }: WeekRows,
  audience: Audience,
  thisWeek: WeekRow,
  isCompared: boolean,
  allBursts: readonly Burst[],
) {
  const { week: firstDay, days_loaded, [audience]: views } = thisWeek;
  const start = addDays(firstDay, -7);
  const isWithin = ({ day }: { readonly day: Day }) => day >= start && day <= addDays(firstDay, 6);
  const days = daily_views.filter(isWithin).map((day) => day[audience] ?? 0);
  const bursts = allBursts.filter((burst) => burst.audience === audience && isWithin(burst));
  const burstsNow = bursts.filter(({ day }) => day >= firstDay);
  const isOnePage = new Set(causes.map(({ path }) => path)).size === 1;
  /** Weekdays that are left out of both weeks, because one of them had a burst. */
  const leftOut = new Set(isCompared ? bursts.map(({ day }) => daysBetween(start, day) % 7) : []);
  const row = usualRows.find((one) => one.week === firstDay && one.audience === audience);
  const { usual, noUsual } = usualOf(days_loaded === 7 ? row : undefined);
  const { [audience]: steady } = withoutBursts(thisWeek, allBursts);
  return {
    audience,
    firstDay,
    views,
    /** On the days that can be compared, this week and the week before; null if none can. */
    same: isCompared && days.length === 14 ? { ...bothWeeks(days, leftOut), days: 7 - leftOut.size } : null,
    /** The views of the fourteen days. */
    days,
    bursts: burstsNow,
    burstsBefore: bursts.filter(({ day }) => day < firstDay),
    leftOut,
    /** None on a site with a single page, where every change is of that page. */
    causes: isOnePage ? [] : causes.filter((cause) => cause.audience === audience),
    usual,
    /** Why there is no usual range, if enough weeks are known. */
    noUsual,
    /** The position relative to the usual range, without bursts. */
    place: usual === null ? 'unknown' : placeIn(usual, steady),
    expected: row?.expected ?? null,
    /** For a record, the number of weeks over which it is the highest; otherwise null. */
    record: row?.is_record === true && burstsNow.length === 0 ? row.weeks : null,
  };
}

/** The views of two weeks of days, each without the weekdays that are left out. */
export function bothWeeks(days: readonly number[], leftOut: ReadonlySet<number>) {
  const known = days.map((views, at) => (leftOut.has(at % 7) ? 0 : views));
  return { before: sum(known.slice(0, 7)), now: sum(known.slice(7)) };
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** A range whose ends differ by more says nothing. */
const WIDEST_RANGE = 4;
const FEW_VIEWS = 500;

/** The range in which nine in ten weeks are expected, or why there is none; neither if too few weeks are known. */
function usualOf(row: UsualRow | undefined) {
  const { low = null, high = null, weeks_used: weeks = null } = row ?? {};
  if (low === null || high === null || weeks === null) return { usual: null, noUsual: null };
  if (high <= WIDEST_RANGE * low) return { usual: { low, high, weeks }, noUsual: null };
  const why = high < FEW_VIEWS ? 'too few views' : 'varies too much';
  return { usual: null, noUsual: `${why} to say what is usual` };
}

const placeIn = ({ low, high }: { low: number; high: number }, views: number) =>
  views < low ? 'below' : views > high ? 'above' : 'inside';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, two) => one - two);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}
