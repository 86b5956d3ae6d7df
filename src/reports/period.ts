import { UTCDate } from '@date-fns/utc';
import { format, getISOWeek, isValid, parse, startOfISOWeek } from 'date-fns';
import { addDays, dayOf, parseDay, startOfDay, type Day, type DayRange } from '../day.js';
import { ConfigurationError } from '../errors.js';

/** The days that one report is about. `name` says it in one word, such as `2026-W46`. */
export interface Period extends DayRange {
  readonly name: string;
  /** Number of the ISO week, 1 to 53. */
  readonly week: number;
}

// The year of an ISO week is that of its Thursday, so it needs `RRRR` and not `yyyy`.
const WEEK_FORMAT = "RRRR-'W'II";

/** The ISO week, Monday to Sunday, that `day` lies in. */
export function weekOf(day: Day): Period {
  const monday = startOfISOWeek(new UTCDate(startOfDay(day)));
  const first = dayOf(monday);
  return { name: format(monday, WEEK_FORMAT), week: getISOWeek(monday), first, last: addDays(first, 6) };
}

/** The last week whose seven days have all ended at `now`. */
export const lastEndedWeek = (now: Date): Period => weekOf(addDays(dayOf(now), -7));

/** Reads `2026-W46`, or any day of that week. */
export function parseWeek(text: string): Period {
  const day = parseDay(text) ?? firstDayOfWeek(text);
  if (day === undefined) {
    throw new ConfigurationError(
      `“${text}” is no period: give an ISO week such as 2026-W46, or a day in it such as 2026-11-12`,
    );
  }
  return weekOf(day);
}

function firstDayOfWeek(text: string): Day | undefined {
  if (!/^\d{4}-W\d{2}$/.test(text)) return undefined;
  const monday = parse(text, WEEK_FORMAT, new UTCDate(0));
  // Week 53 of a year that has 52 would roll over into the next year.
  return isValid(monday) && format(monday, WEEK_FORMAT) === text ? dayOf(monday) : undefined;
}
