import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { endOfMonth, format, getISODay, getISOWeek, isValid, parse, startOfMonth } from 'date-fns';
import { addDays, day, dayOf, parseDay, startOfDay, WEEKDAYS, type Day, type DayRange } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { dayRange } from '../format/days.js';

/** The first day of a week, and the time zone that decides when a day is over. Days themselves are UTC. */
export interface Calendar {
  readonly firstDayOfWeek: (typeof WEEKDAYS)[number];
  readonly timezone: string;
}

export const ISO_CALENDAR: Calendar = { firstDayOfWeek: 'monday', timezone: 'UTC' };

export type PeriodKind = 'week' | 'month' | 'day';

/** The days that one report is about. */
export interface Period extends DayRange {
  readonly kind: PeriodKind;
  /** As `--period` takes it: `2026-W46`, `2026-11` or `2026-11-12`. */
  readonly name: string;
  /** `Week 46`, `November 2026` or `Thursday`. */
  readonly label: string;
}

/** The period that `of` lies in. */
export function periodOf(kind: PeriodKind, of: Day, calendar: Calendar): Period {
  const date = new UTCDate(startOfDay(of));
  switch (kind) {
    case 'week':
      return weekOf(of, calendar);
    case 'month': {
      const [first, last] = [dayOf(startOfMonth(date)), dayOf(endOfMonth(date))];
      return { kind, name: of.slice(0, 7), label: format(date, 'MMMM yyyy'), first, last };
    }
    case 'day':
      return { kind, name: of, label: format(date, 'EEEE'), first: of, last: of };
  }
}

/** The last period whose days have all ended at `now`, both in UTC and in the calendar's time zone. */
export function lastEnded(kind: PeriodKind, now: Date, calendar: Calendar): Period {
  const local = dayIn(calendar.timezone, now);
  const today = local < dayOf(now) ? local : dayOf(now);
  return periodOf(kind, addDays(periodOf(kind, today, calendar).first, -1), calendar);
}

const EXAMPLES: Readonly<Record<PeriodKind, string>> = {
  week: 'an ISO week such as 2026-W46, or a day in it such as 2026-11-12',
  month: 'a month such as 2026-11, or a day in it such as 2026-11-12',
  day: 'a day such as 2026-11-12',
};

/**
 * The period that `--period` names, also as a day in it; by default the last that has ended. Throws a
 * `ConfigurationError`.
 */
export function choosePeriod(
  kind: PeriodKind,
  text: string | undefined,
  now: Date,
  calendar: Calendar,
): Period {
  if (text === undefined) return lastEnded(kind, now, calendar);
  const named = periodNamed(text, calendar);
  if (named?.kind === kind) return named;
  if (named?.kind === 'day') return periodOf(kind, named.first, calendar);
  throw new ConfigurationError(`“${text}” is not a valid ${kind} for this report: write ${EXAMPLES[kind]}`);
}

/** The period with that `name`; undefined when there is none. */
export function periodNamed(name: string, calendar: Calendar): Period | undefined {
  // Days before or after those of other years could not be written with four digits.
  if (!/^(?!9999)[1-9]/.test(name)) return undefined;
  if (/^\d{4}-\d{2}$/.test(name)) {
    const first = parseDay(`${name}-01`);
    return first && periodOf('month', first, calendar);
  }
  if (/^\d{4}-W\d{2}$/.test(name)) {
    const monday = parse(name, WEEK_FORMAT, new UTCDate(0));
    // Week 53 of a year that has 52 would roll over into the next year.
    if (!isValid(monday) || format(monday, WEEK_FORMAT) !== name) return undefined;
    const offset = (WEEKDAYS.indexOf(calendar.firstDayOfWeek) + MIDDLE) % 7;
    return weekOf(addDays(dayOf(monday), offset), calendar);
  }
  const only = parseDay(name);
  return only && periodOf('day', only, calendar);
}

// The year of an ISO week is that of its Thursday, so it needs `RRRR` and not `yyyy`.
const WEEK_FORMAT = "RRRR-'W'II";
/** Days from the first day of a week to its middle day, which decides its ISO number. */
const MIDDLE = 3;

function weekOf(of: Day, { firstDayOfWeek }: Calendar): Period {
  const weekday = getISODay(new UTCDate(startOfDay(of))) - 1;
  const first = addDays(of, -((weekday - WEEKDAYS.indexOf(firstDayOfWeek) + 7) % 7));
  const middle = new UTCDate(startOfDay(addDays(first, MIDDLE)));
  const label = `Week ${getISOWeek(middle)}`;
  return { kind: 'week', name: format(middle, WEEK_FORMAT), label, first, last: addDays(first, 6) };
}

/** The calendar day of `instant` in a time zone. */
const dayIn = (timezone: string, instant: Date): Day =>
  day(new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(instant));

/** `Week 46 · Mon, Nov 9 – Sun, Nov 15, 2026`, `November 2026`, `Thu, Nov 12, 2026`. */
export const titleOf = (period: Period): string => {
  const range = dayRange(period);
  return period.kind === 'week' ? `${period.label} · ${range}` : period.kind === 'day' ? range : period.label;
};
