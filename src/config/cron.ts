import { tzOffset } from '@date-fns/tz';
import { CronExpressionParser } from 'cron-parser';
import { addDays, addMinutes, isEqual, max, min, subHours } from 'date-fns';

/**
 * The latest time at or before `now` that matches a cron expression in a time zone. A time that is
 * skipped in spring counts once, and so does one that occurs twice in fall, unless every hour matches.
 */
export function lastScheduled(expression: string, timezone: string, now: Date): Date {
  const wall = addMinutes(now, tzOffset(timezone, now));
  const times = parse(expression, new Date(Math.floor(wall.getTime() / 1000) * 1000 + 1000));
  const instants = instantsOf(times.prev().toDate(), timezone);
  return times.fields.hour.isWildcard ? max(instants.filter((instant) => instant <= now)) : min(instants);
}

/** The first time after `instant` that matches a cron expression. */
export function nextScheduled(expression: string, timezone: string, instant: Date): Date {
  const wall = addMinutes(instant, tzOffset(timezone, instant));
  // When the clocks are set back, they show times of the last hour again.
  const found = [wall, subHours(wall, 1)].map((from) => {
    const times = parse(expression, from);
    for (;;) {
      const instants = instantsOf(times.next().toDate(), timezone);
      const counted = times.fields.hour.isWildcard ? instants : [min(instants)];
      const later = counted.filter((one) => one > instant);
      if (later.length > 0) return min(later);
    }
  });
  return min(found);
}

const FIELDS = [
  'a minute (0-59)',
  'an hour (0-23)',
  'a day of the month (1-31)',
  'a month (1-12, JAN-DEC)',
  'a weekday (0-7, SUN-SAT)',
];

/** What is wrong with a cron expression; undefined if it is valid. */
export function cronProblem(text: string): string | undefined {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== FIELDS.length) return 'it does not have five fields separated by spaces';
  const misread = FIELDS.findIndex((_, index) => {
    const field = fields[index] ?? '';
    // The parser would choose a random value for H in each process.
    return /\bH\b/i.test(field) || !isRead(FIELDS.map((__, other) => (other === index ? field : '*')));
  });
  if (misread >= 0)
    return `'${fields[misread]}' is not ${FIELDS[misread]}, a range such as 1-5, a step such as */5 or 1-5/2, or a list of these without repeats`;
  return isRead(fields) ? undefined : 'no such day exists';
}

function isRead(fields: readonly string[]): boolean {
  try {
    return parse(fields.join(' '), new Date()).hasPrev();
  } catch {
    return false;
  }
}

/** Parsed in UTC, because the parser skips nights around a clock change in one direction. */
const parse = (expression: string, currentDate: Date) =>
  CronExpressionParser.parse(expression, { currentDate, tz: 'UTC' });

/** When the zone's clock shows `wall`, given as if in UTC: once, twice, or as soon as it has skipped it. */
function instantsOf(wall: Date, timezone: string): Date[] {
  const offsets = [-1, 1].map((days) => tzOffset(timezone, addDays(wall, days)));
  const candidates = offsets.map((offset) => addMinutes(wall, -offset));
  const shown = candidates.filter((instant) =>
    isEqual(addMinutes(instant, tzOffset(timezone, instant)), wall),
  );
  if (shown.length > 0) return shown;
  let instant = min(candidates);
  while (tzOffset(timezone, instant) === offsets[0]) instant = addMinutes(instant, 1);
  return [instant];
}
