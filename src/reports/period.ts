import { UTCDate } from '@date-fns/utc';
import { endOfMonth, format, getISODay, getISOWeek, isValid, parse, startOfMonth } from 'date-fns';
import { addDays, day, dayOf, parseDay, startOfDay, WEEKDAYS, type Day, type DayRange } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { dayRange } from '../format/days.js';

/** On which day weeks begin, and by whose clock a day is over and moments are told. Days themselves are UTC. */
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

/** The last period whose days have all ended at `now`, in UTC and by the clock of the calendar's zone. */
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

/** Reads what `--period` says: a period of the kind, or any day in one. */
export function parsePeriod(kind: PeriodKind, text: string, calendar: Calendar): Period {
  const within = parseDay(text) ?? namedStart(kind, text, calendar);
  if (within !== undefined) return periodOf(kind, within, calendar);
  throw new ConfigurationError(
    `“${text}” is no ${kind} that this report could be about: give ${EXAMPLES[kind]}`,
  );
}

function namedStart(kind: PeriodKind, text: string, calendar: Calendar): Day | undefined {
  if (kind === 'month') return /^\d{4}-\d{2}$/.test(text) ? parseDay(`${text}-01`) : undefined;
  if (kind === 'day' || !/^\d{4}-W\d{2}$/.test(text)) return undefined;
  const monday = parse(text, WEEK_FORMAT, new UTCDate(0));
  // Week 53 of a year that has 52 would roll over into the next year.
  if (!isValid(monday) || format(monday, WEEK_FORMAT) !== text) return undefined;
  return addDays(dayOf(monday), (WEEKDAYS.indexOf(calendar.firstDayOfWeek) + MIDDLE) % 7);
}

// The year of an ISO week is that of its Thursday, so it needs `RRRR` and not `yyyy`.
const WEEK_FORMAT = "RRRR-'W'II";
/** The middle of a week, in days from its first: a week bears the ISO number of the week that its middle lies in. */
const MIDDLE = 3;

function weekOf(of: Day, { firstDayOfWeek }: Calendar): Period {
  const weekday = getISODay(new UTCDate(startOfDay(of))) - 1;
  const first = addDays(of, -((weekday - WEEKDAYS.indexOf(firstDayOfWeek) + 7) % 7));
  const middle = new UTCDate(startOfDay(addDays(first, MIDDLE)));
  const label = `Week ${getISOWeek(middle)}`;
  return { kind: 'week', name: format(middle, WEEK_FORMAT), label, first, last: addDays(first, 6) };
}

/** The calendar day that `instant` lies in by the clock of `timezone`. */
const dayIn = (timezone: string, instant: Date): Day =>
  day(new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' }).format(instant));

/** `Week 46 · Mon 9 – Sun 15 Nov 2026`, `November 2026`, `Thu 12 Nov 2026`. */
export const titleOf = (period: Period): string => {
  const range = dayRange(period);
  return period.kind === 'week' ? `${period.label} · ${range}` : period.kind === 'day' ? range : period.label;
};
