import { addDays, type Day } from '../../day.js';
import type { RecordsRow, WeekRow } from './rows.js';

export type Audience = 'human' | 'ai';

export const other = (audience: Audience): Audience => (audience === 'ai' ? 'human' : 'ai');

/** Who has more views; undefined when both have the same. */
export const leader = ({ human, ai }: Readonly<Record<Audience, number>>): Audience | undefined =>
  human === ai ? undefined : ai > human ? 'ai' : 'human';

/** A week and those before it. Only whole weeks, with all seven days loaded, are compared. */
export interface Comparison {
  readonly thisWeek: WeekRow;
  /** The week before, whole or not; null when none of its days is loaded. */
  readonly weekBefore: WeekRow | null;
  /** The week before, when it and this week are whole: what changes are measured from. */
  readonly before: WeekRow | null;
  /** Earlier whole weeks, newest first. */
  readonly earlier: readonly WeekRow[];
  /** Those of them that reach back from this week without a gap. */
  readonly unbroken: readonly WeekRow[];
  /** The highest of all whole weeks before. */
  readonly records: RecordsRow;
}

/** Compares the week that begins on `firstDay`; undefined when none of its days is loaded. */
export function compareWeeks(
  weeks: readonly WeekRow[],
  firstDay: Day,
  records: RecordsRow,
): Comparison | undefined {
  const isWhole = (week: WeekRow): boolean => week.days_loaded === 7;
  const thisWeek = weeks.find(({ week }) => week === firstDay);
  if (thisWeek === undefined) return undefined;
  const weekBefore = weeks.find(({ week }) => week === addDays(firstDay, -7)) ?? null;
  const earlier = weeks.filter((week) => week.week < firstDay && isWhole(week)).toReversed();
  const gap = earlier.findIndex(({ week }, index) => week !== addDays(firstDay, -7 * (index + 1)));
  return {
    thisWeek,
    weekBefore,
    before: isWhole(thisWeek) && weekBefore !== null && isWhole(weekBefore) ? weekBefore : null,
    earlier,
    unbroken: gap < 0 ? earlier : earlier.slice(0, gap),
    records,
  };
}

/** What is usual: the lowest and the highest count of some earlier whole weeks. */
export interface UsualRange {
  readonly low: number;
  readonly high: number;
  readonly weeks: number;
}

const USUAL_WEEKS_MOST = 8;
export const USUAL_WEEKS_LEAST = 4;

/** The usual range of an audience; null when the week is not whole, or too few weeks came before it. */
export function usualOf({ thisWeek, earlier }: Comparison, audience: Audience): UsualRange | null {
  const counts = earlier.slice(0, USUAL_WEEKS_MOST).map((week) => week[audience]);
  if (thisWeek.days_loaded < 7 || counts.length < USUAL_WEEKS_LEAST) return null;
  return { low: Math.min(...counts), high: Math.max(...counts), weeks: counts.length };
}

const RECORD_WEEKS_LEAST = 12;

/** Whether the week is the highest ever of an audience, in a history long enough for that to mean something. */
export const isRecord = ({ thisWeek, records }: Comparison, audience: Audience): boolean =>
  thisWeek.days_loaded === 7 &&
  records.weeks >= RECORD_WEEKS_LEAST &&
  thisWeek[audience] > (records[audience] ?? Infinity);

/** Where a count lies relative to its usual range. */
export function placeIn(usual: UsualRange | null, count: number): 'unknown' | 'below' | 'inside' | 'above' {
  if (usual === null) return 'unknown';
  if (count < usual.low) return 'below';
  return count > usual.high ? 'above' : 'inside';
}
