import { tzOffset } from '@date-fns/tz';
import { CronExpressionParser } from 'cron-parser';
import { addDays, addMinutes, isEqual, min } from 'date-fns';
import cron from 'node-cron';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

/**
 * The latest time at or before `now` that matches a cron expression in a time zone. A time that is
 * skipped in spring or occurs twice in fall counts once.
 */
export function lastScheduled(expression: string, timezone: string, now: Date): Date {
  const wall = addMinutes(now, tzOffset(timezone, now));
  const currentDate = new Date(Math.floor(wall.getTime() / 1000) * 1000 + 1000);
  return instantOf(parse(expression, currentDate).prev().toDate(), timezone);
}

/** The first time after `instant` that matches a cron expression. */
export function nextScheduled(expression: string, timezone: string, instant: Date): Date {
  const wall = addMinutes(instant, tzOffset(timezone, instant));
  return instantOf(parse(expression, wall).next().toDate(), timezone);
}

const FIELDS = {
  minute: 'minute (0-59)',
  hour: 'hour (0-23)',
  dayOfMonth: 'day of the month (1-31)',
  month: 'month (1-12, JAN-DEC)',
  dayOfWeek: 'weekday (0-7, SUN-SAT)',
} as const;
type Field = keyof typeof FIELDS;
const FIELD_NAMES = Object.keys(FIELDS) as Field[];

/**
 * What is wrong with a cron expression; undefined if it is valid. One library decides what is due,
 * and another when to check. An expression is refused if either rejects it, or if they interpret it
 * differently.
 */
export function cronProblem(text: string): string | undefined {
  const fields = text.trim().split(/ +/);
  if (fields.length !== FIELD_NAMES.length) return 'it does not have five fields separated by spaces';
  const misread = FIELD_NAMES.findIndex((name, index) => !isReadAlike(name, fields[index]));
  const name = FIELD_NAMES[misread];
  if (name !== undefined)
    return `'${fields[misread]}' is not a ${FIELDS[name]}, a range such as 1-5, a step such as */5 or 1-5/2, or a list of these without repeats`;
  // One library requires either to match, the other requires both.
  if (!isAny(fields[2]) && !isAny(fields[4]))
    return 'it names days of the month and weekdays; one of them must be *';
  return holds(() => parse(text, new Date()).hasPrev()) ? undefined : 'no such day exists';
}

/** Whether both libraries interpret a field as the same numbers. */
const isReadAlike = (name: Field, field: string | undefined): boolean =>
  holds(() => {
    const alone = FIELD_NAMES.map((one) => (one === name ? field : '*')).join(' ');
    const { values } = parse(alone, new Date()).fields[name];
    return isDeepStrictEqual(numbersOf(name, values), numbersOf(name, cron.parse(alone)[name]));
  });

const isAny = (field: string | undefined): boolean => field === '*' || field === '?';

/** Sunday is 0 and 7. */
const numbersOf = (name: Field, values: readonly (number | string)[]): Set<number> =>
  new Set(values.map((value) => z.int().parse(value) % (name === 'dayOfWeek' ? 7 : Infinity)));

function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

/** Parsed in UTC, because the parser skips nights around a clock change in one direction. */
const parse = (expression: string, currentDate: Date) =>
  CronExpressionParser.parse(expression, { currentDate, tz: 'UTC' });

/**
 * When the zone's clock shows `wall`, given as if in UTC: the first of two such times, or an hour
 * before a skipped one.
 */
function instantOf(wall: Date, timezone: string): Date {
  const candidates = [-1, 1]
    .map((days) => tzOffset(timezone, addDays(wall, days)))
    .map((offset) => addMinutes(wall, -offset));
  const shown = candidates.filter((instant) =>
    isEqual(addMinutes(instant, tzOffset(timezone, instant)), wall),
  );
  return min(shown.length > 0 ? shown : candidates);
}
