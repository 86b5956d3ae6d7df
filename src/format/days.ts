import { UTCDateMini as UTCDate } from '@date-fns/utc/date/mini';
import { format } from 'date-fns';
import { daysBetween, startOfDay, type Day, type DayRange, wholeMonths } from '../day.js';

const write = (day: Day, pattern: string): string => format(new UTCDate(startOfDay(day)), pattern);

/** Writes a range in US order. The month and year of the last day are left out where they repeat. */
function writeRange({ first, last }: DayRange, weekday: '' | 'EEE, ', years: 'always' | 'if-two'): string {
  const isOneYear = write(first, 'yyyy') === write(last, 'yyyy');
  const isOneMonth = isOneYear && write(first, 'MM') === write(last, 'MM');
  const year = years === 'always' || !isOneYear ? ', yyyy' : '';
  if (first === last) return write(first, `${weekday}MMM d${year}`);
  const start = write(first, `${weekday}MMM d${isOneYear ? '' : ', yyyy'}`);
  return `${start} – ${write(last, `${weekday}${isOneMonth && weekday === '' ? '' : 'MMM '}d${year}`)}`;
}

/** `Mon, Nov 9 – Sun, Nov 15, 2026`, `Mon, Dec 28, 2026 – Sun, Jan 3, 2027`. */
export const dayRange = (range: DayRange): string => writeRange(range, 'EEE, ', 'always');

/** `Nov 9 – 15`, `Dec 28, 2026 – Jan 3, 2027`: for contexts where the year is known. */
export const shortDayRange = (range: DayRange): string => writeRange(range, '', 'if-two');

/** `Nov 9 – 15, 2026`. */
export const plainDayRange = (range: DayRange): string => writeRange(range, '', 'always');

/** `October 2026`, `Q4 2026` or `2026` for a whole one; for other days as `plainDayRange`. */
export function namedRange(range: DayRange): string {
  const months = wholeMonths(range);
  const month = Number(range.first.slice(5, 7)) - 1;
  const pattern = months === null || month % months !== 0 ? undefined : PATTERNS.get(months);
  return pattern === undefined ? plainDayRange(range) : write(range.first, pattern);
}
const PATTERNS = new Map([
  [1, 'MMMM yyyy'],
  [3, 'QQQ yyyy'],
  [12, 'yyyy'],
]);

/** `Nov 9, 2026`. */
export const longDay = (day: Day): string => write(day, 'MMM d, yyyy');

/** `Nov`. */
export const shortMonth = (day: Day): string => write(day, 'MMM');

/** `Tuesday`. */
export const weekday = (day: Day): string => write(day, 'EEEE');

/** `Tuesday, Nov 10`: in sentences about a week. */
export const namedDay = (day: Day): string => write(day, 'EEEE, MMM d');

/**
 * `Nov 18, 2026 at 02:00 UTC`; in another zone with its offset from UTC, such as `Nov 18, 2026 at
 * 03:00 UTC+1`.
 */
export function moment(instant: Date, timezone = 'UTC'): string {
  const parts = formatOf(timezone).formatToParts(instant);
  const part = (type: string): string => parts.find((part) => part.type === type)?.value ?? '';
  const zone = part('timeZoneName').replace(/^GMT(?:[+-]0)?/, 'UTC');
  return `${part('month')} ${part('day')}, ${part('year')} at ${part('hour')}:${part('minute')} ${zone}`;
}

/** Making one takes longer than using it a hundred times, and each error about a wait uses one. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    timeZoneName: 'shortOffset',
    hourCycle: 'h23',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  });
  formats.set(timezone, made);
  return made;
}

/** A time to wait for, rounded up to the minute: `Nov 21, 2026 at 01:36 UTC`. */
export const nextMinute = (instant: Date): string =>
  moment(new Date(Math.ceil(instant.getTime() / 60_000) * 60_000));

/**
 * A list of days, with consecutive days as ranges: `Nov 9 – 11 and Nov 15`. Expects them oldest
 * first.
 */
export function dayList(days: readonly Day[]): string {
  const runs: { first: Day; last: Day }[] = [];
  for (const day of days) {
    const run = runs.at(-1);
    if (run !== undefined && daysBetween(run.last, day) === 1) run.last = day;
    else runs.push({ first: day, last: day });
  }
  return inSequence(runs.map(shortDayRange));
}

/** `a`, `a and b`, `a, b and c`. */
export function inSequence(items: readonly string[], word: 'and' | 'or' = 'and'): string {
  const last = items.at(-1) ?? '';
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} ${word} ${last}`;
}

/** `under 1 s`, `8 s`, `3 min 20 s`, `2 h 5 min`: at most two units. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 1) return 'under 1 s';
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
