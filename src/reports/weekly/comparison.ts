import { addDays, type Day } from '../../day.js';
import type { UsualRow, WeekRow } from './rows.js';

export const AUDIENCES = ['ai', 'human'] as const;
export type Audience = (typeof AUDIENCES)[number];

export const other = (audience: Audience): Audience => (audience === 'ai' ? 'human' : 'ai');

/** Who has more views; undefined when both have the same. */
export const leader = ({ human, ai }: Readonly<Record<Audience, number>>): Audience | undefined =>
  human === ai ? undefined : ai > human ? 'ai' : 'human';

/** A week and the weeks before it. Only full weeks, with all seven days loaded, are compared. */
export interface Comparison {
  readonly thisWeek: WeekRow;
  /** The week before, full or not; null if none of its days is loaded. */
  readonly weekBefore: WeekRow | null;
  /** The week before, if it and this week are full: the basis for changes. */
  readonly before: WeekRow | null;
  /** Earlier full weeks, newest first. */
  readonly earlier: readonly WeekRow[];
  /** Those that reach back from this week without a gap. */
  readonly unbroken: readonly WeekRow[];
  readonly usual: readonly UsualRow[];
  /** Whether the history starts with this week. */
  readonly isFirst: boolean;
}

/** Compares the week that begins on `firstDay`; null if none of its days is loaded. */
export function compareWeeks(
  weeks: readonly WeekRow[],
  firstDay: Day,
  usual: readonly UsualRow[],
  historySince: Day,
): Comparison | null {
  const isWhole = (week: WeekRow): boolean => week.days_loaded === 7;
  const thisWeek = weeks.find(({ week }) => week === firstDay);
  if (thisWeek === undefined) return null;
  const weekBefore = weeks.find(({ week }) => week === addDays(firstDay, -7)) ?? null;
  const earlier = weeks.filter((week) => week.week < firstDay && isWhole(week)).toReversed();
  const gap = earlier.findIndex(({ week }, index) => week !== addDays(firstDay, -7 * (index + 1)));
  return {
    thisWeek,
    weekBefore,
    before: isWhole(thisWeek) && weekBefore !== null && isWhole(weekBefore) ? weekBefore : null,
    earlier,
    unbroken: gap < 0 ? earlier : earlier.slice(0, gap),
    usual: usual.filter(({ week }) => week === firstDay),
    isFirst: historySince >= firstDay,
  };
}

/** The range of nine in ten weeks that follow the line through the `weeks` full weeks before. */
export interface UsualRange {
  readonly low: number;
  readonly high: number;
  readonly weeks: number;
}

/** The usual range of an audience; null if the week is not full, or too few weeks came before it. */
export function usualOf({ usual }: Comparison, audience: Audience): UsualRange | null {
  const { low = null, high = null, weeks_used: weeks = null } = rowOf(usual, audience) ?? {};
  return low === null || high === null || weeks === null ? null : { low, high, weeks };
}

/** For a record, the number of weeks over which it is an audience's highest; otherwise undefined. */
export function recordOf({ usual }: Comparison, audience: Audience): number | undefined {
  const row = rowOf(usual, audience);
  return row?.is_record === true ? row.weeks : undefined;
}

const rowOf = (rows: readonly UsualRow[], of: Audience): UsualRow | undefined =>
  rows.find(({ audience }) => audience === of);

/** The position of a count relative to its usual range. */
export function placeIn(usual: UsualRange | null, count: number): 'unknown' | 'below' | 'inside' | 'above' {
  if (usual === null) return 'unknown';
  if (count < usual.low) return 'below';
  return count > usual.high ? 'above' : 'inside';
}
