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

/** Whether a text is a cron expression of five fields, at least one time of which has been. */
export function isCron(text: string): boolean {
  // The parser would choose a random value for H in each process.
  if (text.trim().split(/\s+/).length !== 5 || /\bH\b/i.test(text)) return false;
  try {
    return parse(text, new Date()).hasPrev();
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
