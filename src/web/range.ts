import { addDays, addMonths, type Day, type DayRange, daysBetween, earlierBy, wholeMonths } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { namedRange, shortDayRange } from '../format/days.js';
import { extentOf } from '../reports/coverage.js';
import { type Calendar, periodOf } from '../reports/period.js';
import type { HistoryReader } from './history.js';
import type { PageQuery, RANGES } from './query.js';

/** How many days up to the last loaded one a link selects. */
const LENGTHS: Readonly<Record<(typeof RANGES)[number], number>> = {
  week: 7,
  '4w': 28,
  '13w': 91,
  '26w': 182,
  '1y': 364,
  month: 31,
  quarter: 92,
  all: 100_000,
};

/** The days that a page is about. */
export type Range = NonNullable<Awaited<ReturnType<typeof rangeOf>>>;

/**
 * The requested days that the history covers; undefined for a project without a loaded day. Throws a
 * `ConfigurationError` if there are none.
 */
export async function rangeOf(reader: HistoryReader, project: string, query: PageQuery, calendar: Calendar) {
  const extent = await extentOf(reader, project);
  if (extent === undefined) return undefined;
  const { first, last: end } = extent;
  const named = namedRanges(end, calendar);
  const isNamed = (name: PageQuery['range']): name is keyof typeof named => name in named;
  const wanted = query.from === undefined && isNamed(query.range) ? named[query.range] : undefined;
  const calendarDays = wanted !== undefined && wanted.last >= first ? wanted : undefined;
  const upTo = calendarDays?.last ?? end;
  const last = query.to !== undefined && query.to < upTo ? query.to : upTo;
  const start =
    query.from ??
    (last === calendarDays?.last ? calendarDays.first : addDays(last, 1 - LENGTHS[query.range]));
  const from = start < first ? first : start;
  if (from > last) throw new ConfigurationError(`Choose days from ${first} to ${end}, the first one first.`);
  const days = daysBetween(from, last) + 1;
  const range = { first: from, last };
  const week = wholeBefore('week', addDays(last, 1), calendar).first;
  return {
    ...range,
    days,
    compared: comparedDays(range, query.against, end),
    /** The name of the selected range, which is all before its first days; empty for days that were typed. */
    chosen: query.from !== undefined ? '' : wanted !== calendarDays ? 'all' : query.range,
    /** Days that have a name of their own, to choose from; none that lie before the history. */
    named: Object.entries(named)
      .filter(([, { last }]) => last >= first)
      .map(([name, { title }]) => ({ name, title })),
    /** The first day of the last whole week of the range. */
    week,
    /** The first days of all its whole weeks if it is about a month, the latest first; of other ranges, of the last one. */
    judgedWeeks: [
      week,
      ...(days > LENGTHS.month
        ? []
        : [7, 14, 21].map((back) => addDays(week, -back)).filter((one) => one >= from)),
    ],
    /** The first and the last day that is loaded at all. */
    extent,
    chart: chartDays({ ...range, days }, extent, query.grain),
  };
}

/** The latest week and month that are whole, and the quarter so far. */
function namedRanges(end: Day, calendar: Calendar) {
  const week = wholeBefore('week', addDays(end, 1), calendar);
  const month = wholeBefore('month', addDays(end, 1), calendar);
  const quarter = { first: startOf(end, QUARTER), last: end };
  const all = { ...quarter, last: addDays(addMonths(quarter.first, QUARTER), -1) };
  return {
    week: { ...week, title: shortDayRange(week) },
    month: { ...month, title: namedRange(month) },
    quarter: { ...quarter, title: `${namedRange(all)}${all.last > end ? ' so far' : ''}` },
  };
}

/** The latest week or month that is over before a day. */
const wholeBefore = (kind: 'week' | 'month', day: Day, calendar: Calendar) =>
  periodOf(kind, addDays(periodOf(kind, day, calendar).first, -1), calendar);

/** In months. */
const [MONTH, QUARTER, YEAR] = [1, 3, 12];

/** The first day of the month, quarter or year that a day lies in. */
function startOf(day: Day, months: number): Day {
  const firstOfMonth = addDays(day, 1 - Number(day.slice(8)));
  return addMonths(firstOfMonth, -((Number(day.slice(5, 7)) - 1) % months));
}

/**
 * The days that those of a range are compared with: whole months, quarters and years with whole ones, one under way with
 * as much of the one before, and others on the same weekdays. `shift` is how many days earlier a chart shows them, on the
 * same weekdays.
 */
function comparedDays(range: DayRange, against: PageQuery['against'], end: Day) {
  if (against === 'none') return { before: null, days_earlier: 0, months_earlier: null, shift: 0 };
  const months = wholeMonths(range) ?? monthsUnderWay(range, end);
  if (months === null) {
    const days = against === 'year' ? 364 : 7 * Math.ceil((daysBetween(range.first, range.last) + 1) / 7);
    return { before: earlierBy(days, range), days_earlier: days, months_earlier: null, shift: days };
  }
  const months_earlier = against === 'year' ? YEAR : months;
  const before = monthsEarlier(months_earlier, range);
  const shift = 7 * Math.round(daysBetween(before.first, range.first) / 7);
  return { before, days_earlier: null, months_earlier, shift };
}

/** How long the month, quarter or year is of which a range has all days until `end`; null for other days. */
function monthsUnderWay({ first, last }: DayRange, end: Day): number | null {
  if (last !== end) return null;
  return [MONTH, QUARTER, YEAR].find((months) => startOf(last, months) === first) ?? null;
}

const monthsEarlier = (months: number, { first, last }: DayRange): DayRange => ({
  first: addMonths(first, -months),
  last: addDays(addMonths(addDays(last, 1), -months), -1),
});

/** As many days or months before those of a range, and after it. */
export function neighborsOf(range: DayRange): { readonly previous: DayRange; readonly next: DayRange } {
  const months = wholeMonths(range);
  if (months !== null) return { previous: monthsEarlier(months, range), next: monthsEarlier(-months, range) };
  const days = daysBetween(range.first, range.last) + 1;
  return { previous: earlierBy(days, range), next: earlierBy(-days, range) };
}

/** A few days are drawn among this many on each side, and a week or some as the last of thirteen weeks. */
const AROUND = 42;
const FEW_WEEKS = 28;

/** The days that a chart has: for a short range, `about` which it is, those around it or before it as well. */
function chartDays(
  { first, last, days }: DayRange & { days: number },
  extent: DayRange,
  grain?: PageQuery['grain'],
) {
  const drawn =
    days < 7
      ? { first: addDays(first, -AROUND), last: addDays(last, AROUND) }
      : { first: days < FEW_WEEKS ? addDays(last, 1 - LENGTHS['13w']) : first, last };
  const shown = {
    first: drawn.first < extent.first ? extent.first : drawn.first,
    last: drawn.last > extent.last ? extent.last : drawn.last,
  };
  const drawnDays = daysBetween(shown.first, shown.last) + 1;
  return {
    ...shown,
    grain: grain ?? (drawnDays <= 100 ? 'day' : drawnDays <= 800 ? 'week' : 'month'),
    /** Null if the range has all of them. */
    about: drawnDays === days ? null : { first, last },
  };
}
