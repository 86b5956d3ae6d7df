import { z } from 'zod';
import { DAY_STATES } from '../../export/plan.js';
import { dayColumn, timestampColumn } from '../../warehouse/query.js';
import { jobRow } from '../jobs.js';

const count = z.number().int().nonnegative();

const week = z.object({
  week: dayColumn,
  human: count,
  ai: count,
  ai_share: z.number().nullable(),
  days_loaded: count,
});
const weekDay = z.object({ day: dayColumn, state: z.enum(DAY_STATES).nullable() });
const dayViews = z.object({
  day: dayColumn,
  audience: z.enum(['Human', 'AI']),
  views: count.nullable(),
  average_drawn: z.boolean(),
});
const moved = z.object({
  audience: z.enum(['human', 'ai']),
  path: z.string(),
  views: count,
  expected: count,
});
const usual = z.object({
  audience: z.enum(['human', 'ai']),
  /** Null with fewer than eight full weeks before. */
  low: count.nullable(),
  high: count.nullable(),
  weeks_used: count.nullable(),
  /** Full weeks known, this one included. */
  weeks: count,
  is_record: z.boolean(),
});
const pageViews = z.object({ path: z.string(), human: count, ai: count });
const mostRead = pageViews.extend({ human_before: count, ai_before: count, first_seen: z.boolean() });

/** What the queries of `reports/weekly` return. */
export const weeklyRows = z.object({
  weeks: z.array(week),
  week_days: z.array(weekDay),
  daily_views: z.array(dayViews),
  pages: z.object({ read: count, ever_seen: count, first_seen: count, new_pages: z.array(pageViews) }),
  usual: z.array(usual),
  moved: z.array(moved),
  most_read: z.array(mostRead),
  one_sided: z.array(pageViews.extend({ reader: z.enum(['human', 'ai']) })),
  agent_work: z.array(jobRow),
  history: z.object({
    first_day: dayColumn.nullable(),
    first_week: z.string().nullable(),
    last_week: z.string().nullable(),
    weeks: count,
    latest_load: timestampColumn.nullable(),
    restated_days: count,
    restated_ratio: z.number().nullable(),
  }),
});

export type WeekRow = z.infer<typeof week>;
export type WeekDayRow = z.infer<typeof weekDay>;
export type MovedRow = z.infer<typeof moved>;
export type UsualRow = z.infer<typeof usual>;
export type MostReadRow = z.infer<typeof mostRead>;
export type HistoryRow = z.infer<typeof weeklyRows>['history'];
