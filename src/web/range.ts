import { z } from 'zod';
import { addDays, type Day, type DayRange, daysBetween } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { type Calendar, periodOf } from '../reports/period.js';
import { dayColumn, readSql } from '../columns.js';
import type { HistoryReader } from './history.js';
import type { Grain, PageQuery } from './query.js';

/** The number of days in each range that a link selects: the last whole week, or up to the last loaded day. */
const RANGES = { week: 7, '4w': 28, '13w': 91, '26w': 182, '1y': 364, all: 100_000 } as const;

const EXTENT = readSql(import.meta.url, 'queries/extent.sql');
const extentRow = z.object({ first: dayColumn, last: dayColumn });

/** The first and the last loaded day of a project; undefined for none. */
export async function extentOf(reader: HistoryReader, project: string): Promise<DayRange | undefined> {
  const [extent] = await reader.query(EXTENT, extentRow, { project });
  return extent;
}

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
  const lastWeek = weekBefore(addDays(end, 1), calendar);
  const isWeek = query.range === 'week' && query.from === undefined && lastWeek.last >= first;
  const upTo = isWeek ? lastWeek.last : end;
  const last = query.to !== undefined && query.to < upTo ? query.to : upTo;
  const start = query.from ?? addDays(last, 1 - RANGES[query.range]);
  const from = start < first ? first : start;
  if (from > last) throw new ConfigurationError(`Choose days from ${first} to ${end}, the first one first.`);
  const days = daysBetween(from, last) + 1;
  return {
    first: from,
    last,
    days,
    /** How many days earlier the days to compare with lie, for a few days on the same weekdays; 0 for none. */
    shift: { before: days < 7 ? 7 : days, year: 364, none: 0 }[query.against],
    /** The name of the selected range, which is all before the first whole week; empty for days that were typed. */
    chosen: query.from !== undefined ? '' : query.range === 'week' && !isWeek ? 'all' : query.range,
    /** The first day of the last whole week of the range. */
    week: weekBefore(addDays(last, 1), calendar).first,
    /** The first and the last day that is loaded at all. */
    extent,
    chart: chartDays({ first: from, last, days }, extent, query.grain),
  };
}

/** The last week that is over before a day. */
const weekBefore = (day: Day, calendar: Calendar) =>
  periodOf('week', addDays(periodOf('week', day, calendar).first, -1), calendar);

/** A few days are drawn among this many on each side, and a week or some as the last of thirteen weeks. */
const AROUND = 42;
const FEW_WEEKS = 28;

/** The days that a chart has: for a short range, `about` which it is, those around it or before it as well. */
function chartDays({ first, last, days }: DayRange & { days: number }, extent: DayRange, grain?: Grain) {
  const drawn =
    days < 7
      ? { first: addDays(first, -AROUND), last: addDays(last, AROUND) }
      : { first: days < FEW_WEEKS ? addDays(last, 1 - RANGES['13w']) : first, last };
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
