import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { addMonths as plusMonths } from 'date-fns';

declare const dayBrand: unique symbol;

/** A calendar day in UTC, written `YYYY-MM-DD`: the grain of the history. Days compare as strings. */
export type Day = string & { readonly [dayBrand]: true };

const DAY_MS = 86_400_000;

/** Parses `YYYY-MM-DD`; undefined for anything else, including impossible dates such as `2026-02-30`. */
export function parseDay(text: string): Day | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  // An impossible date is read as a day of the next month, or not at all.
  const isPossible = startOfDay(text as Day).getUTCDate() === Number(text.slice(8));
  return isPossible ? (text as Day) : undefined;
}

/** As `parseDay`, for days in the code itself: throws a `RangeError` for anything else. */
export function day(text: string): Day {
  const parsed = parseDay(text);
  if (parsed === undefined) throw new RangeError(`not a day (YYYY-MM-DD): ${text}`);
  return parsed;
}

/** The UTC day of `instant`. */
export const dayOf = (instant: Date): Day => instant.toISOString().slice(0, 10) as Day;

/** Midnight UTC at the start of `day`. */
export const startOfDay = (day: Day): Date => new Date(`${day}T00:00:00Z`);

/** `day` plus a whole number of days, which may be negative. */
export const addDays = (day: Day, days: number): Day =>
  dayOf(new Date(startOfDay(day).getTime() + days * DAY_MS));

/** Days from `from` to `to`: 1 from a day to the next, negative when `to` is earlier. */
export const daysBetween = (from: Day, to: Day): number =>
  (startOfDay(to).getTime() - startOfDay(from).getTime()) / DAY_MS;

/** `day` plus a whole number of months; the last day of the month if it has no such day. */
export const addMonths = (day: Day, months: number): Day =>
  dayOf(plusMonths(new UTCDate(startOfDay(day)), months));

/** The last day that has ended at `now`. Today is never complete, so never loaded. */
export const lastEndedDay = (now: Date): Day => addDays(dayOf(now), -1);

/** As in ISO 8601. */
export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const;

/** A range of days, both ends included. Empty when `last` is before `first`. */
export interface DayRange {
  readonly first: Day;
  readonly last: Day;
}

/** The days that lie `days` before those of a range. */
export const earlierBy = (days: number, { first, last }: DayRange): DayRange => ({
  first: addDays(first, -days),
  last: addDays(last, -days),
});

/** How many calendar months a range has, from the first day of one to the last day of one; null for any other range. */
export function wholeMonths({ first, last }: DayRange): number | null {
  const next = addDays(last, 1);
  if (!first.endsWith('-01') || !next.endsWith('-01')) return null;
  const monthOf = (day: Day) => 12 * Number(day.slice(0, 4)) + Number(day.slice(5, 7));
  return monthOf(next) - monthOf(first);
}

/** The range from the first to the last of some sorted days. Throws a `RangeError` if there are none. */
export function rangeOf(days: readonly Day[]): DayRange {
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('no days make no range');
  return { first, last };
}

/** The days of a range, oldest first. */
export function daysIn({ first, last }: DayRange): Day[] {
  const count = Math.max(0, daysBetween(first, last) + 1);
  const start = startOfDay(first).getTime();
  return Array.from({ length: count }, (_, index) => dayOf(new Date(start + index * DAY_MS)));
}
