import { z } from 'zod';
import { dayColumn } from '../../warehouse/query.js';
import { jobRow } from '../jobs.js';

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
export type MovedRow = z.infer<typeof moved>;
export type UsualRow = z.infer<typeof usual>;
export type MostReadRow = z.infer<typeof mostRead>;
