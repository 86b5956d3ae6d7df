import { addDays, type Day } from '../../day.js';
import { z } from 'zod';
import { dayColumn } from '../../warehouse/query.js';
import { jobRow } from '../improve.js';

const count = z.number().int().nonnegative();

const week = z.object({
  week: dayColumn,
  human: count,
  ai: count,
  ai_share: z.number().nullable(),
  days_loaded: count,
});
const dayViews = z.object({ day: dayColumn, human: count.nullable(), ai: count.nullable() });
const moved = z.object({
  audience: z.enum(['human', 'ai']),
  path: z.string(),
  views: count,
  expected: count,
  /** Its full weeks of the last thirteen, oldest first. */
  weeks: z.array(
    z.object({ ago: count, views: count, low: z.number().nullable(), high: z.number().nullable() }),
  ),
});
const usual = z.object({
  week: dayColumn,
  audience: z.enum(['human', 'ai']),
  /** Null with fewer than eight full weeks before. */
  low: count.nullable(),
  high: count.nullable(),
  weeks_used: count.nullable(),
  /** Full weeks known, including this one. */
  weeks: count,
  is_record: z.boolean(),
});
const pageViews = z.object({ path: z.string(), human: count, ai: count });
const mostRead = pageViews.extend({ human_before: count, ai_before: count, first_seen: z.boolean() });

/** What the queries of `reports/weekly` return. */
export const weeklyRows = z.object({
  weeks: z.array(week),
  daily_views: z.array(dayViews),
  pages: z.object({ read: count, ever_seen: count, first_seen: count, new_pages: z.array(pageViews) }),
  usual: z.array(usual),
  moved: z.array(moved),
  most_read: z.array(mostRead),
  one_sided: z.array(pageViews.extend({ reader: z.enum(['human', 'ai']) })),
  agent_work: z.array(jobRow),
});

export type WeekRow = z.infer<typeof week>;
export type DayRow = z.infer<typeof dayViews>;
export type MovedRow = z.infer<typeof moved>;
export type UsualRow = z.infer<typeof usual>;
export type MostReadRow = z.infer<typeof mostRead>;

export const AUDIENCES = ['ai', 'human'] as const;
export type Audience = (typeof AUDIENCES)[number];

export const other = (audience: Audience): Audience => (audience === 'ai' ? 'human' : 'ai');

/** Who has more views; undefined when both have the same. */
export const leader = ({ human, ai }: Readonly<Record<Audience, number>>): Audience | undefined =>
  human === ai ? undefined : ai > human ? 'ai' : 'human';

/** A week and the weeks before it. Only full weeks, with all seven days loaded, are compared. */
export type Comparison = NonNullable<ReturnType<typeof compareWeeks>>;

/** Compares the week that begins on `firstDay`; null if none of its days is loaded. */
export function compareWeeks(
  weeks: readonly WeekRow[],
  firstDay: Day,
  usual: readonly UsualRow[],
  historySince: Day,
) {
  const isWhole = (week: WeekRow): boolean => week.days_loaded === 7;
  const thisWeek = weeks.find(({ week }) => week === firstDay);
  if (thisWeek === undefined) return null;
  const weekBefore = weeks.find(({ week }) => week === addDays(firstDay, -7)) ?? null;
  const earlier = weeks.filter((week) => week.week < firstDay && isWhole(week)).toReversed();
  const gap = earlier.findIndex(({ week }, index) => week !== addDays(firstDay, -7 * (index + 1)));
  return {
    thisWeek,
    /** The week before, full or not; null if none of its days is loaded. */
    weekBefore,
    /** The week before, if it and this week are full: the basis for changes. */
    before: isWhole(thisWeek) && weekBefore !== null && isWhole(weekBefore) ? weekBefore : null,
    /** Earlier full weeks, newest first. */
    earlier,
    /** Those that reach back from this week without a gap. */
    unbroken: gap < 0 ? earlier : earlier.slice(0, gap),
    usual: usual.filter(({ week }) => week === firstDay),
    /** Whether the history starts with this week. */
    isFirst: historySince >= firstDay,
  };
}

/**
 * The range of nine in ten weeks that follow the line through the `weeks` full weeks before; null
 * if the week is not full, or too few weeks came before it.
 */
export function usualOf({ usual }: Comparison, audience: Audience) {
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

/** The position of an audience's views this week relative to their usual range. */
export function placeOf(week: Comparison, audience: Audience) {
  const usual = usualOf(week, audience);
  const views = week.thisWeek[audience];
  if (usual === null) return 'unknown';
  if (views < usual.low) return 'below';
  return views > usual.high ? 'above' : 'inside';
}
