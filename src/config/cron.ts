import { tzOffset } from '@date-fns/tz';
import { CronExpressionParser } from 'cron-parser';
import { addDays, addMinutes, isEqual, min } from 'date-fns';

/**
 * The latest moment at or before `now` that a cron expression names, by the clock of a time zone. A time that the clock
 * leaps over in spring, and one that it shows twice in autumn, count once.
 */
export function lastScheduled(expression: string, timezone: string, now: Date): Date {
  const wall = addMinutes(now, tzOffset(timezone, now));
  const currentDate = new Date(Math.floor(wall.getTime() / 1000) * 1000 + 1000);
  return instantOf(parse(expression, currentDate).prev().toDate(), timezone);
}

/** The first moment after `instant` that a cron expression names. */
export function nextScheduled(expression: string, timezone: string, instant: Date): Date {
  const wall = addMinutes(instant, tzOffset(timezone, instant));
  return instantOf(parse(expression, wall).next().toDate(), timezone);
}

/** Whether a text is five fields of a cron expression that names any moment at all. */
export function isCron(text: string): boolean {
  if (text.trim().split(/\s+/).length !== 5) return false;
  try {
    return parse(text, new Date()).hasPrev();
  } catch {
    return false;
  }
}

/** The parser looks at a clock that never leaps: around a leap, it leaves nights out in one direction. */
const parse = (expression: string, currentDate: Date) =>
  CronExpressionParser.parse(expression, { currentDate, tz: 'UTC' });

/** When a clock shows `wall`, which is written as if it were UTC: the first time, if twice; if never, an hour before. */
function instantOf(wall: Date, timezone: string): Date {
  const candidates = [-1, 1]
    .map((days) => tzOffset(timezone, addDays(wall, days)))
    .map((offset) => addMinutes(wall, -offset));
  const shown = candidates.filter((instant) =>
    isEqual(addMinutes(instant, tzOffset(timezone, instant)), wall),
  );
  return min(shown.length > 0 ? shown : candidates);
}
