import { z } from 'zod';
import { dayColumn, timestampColumn } from '../../warehouse/query.js';

const count = z.number().int().nonnegative();

const week = z.object({
  week: dayColumn,
  iso_week: z.string(),
  human: count,
  ai: count,
  ai_share: z.number().nullable(),
  days_loaded: count,
});

const weekDay = z.object({
  day: dayColumn,
  state: z.enum(['provisional', 'final', 'inconsistent', 'failed']).nullable(),
});

const mostRead = z.object({
  path: z.string(),
  human: count,
  ai: count,
  human_before: count,
  ai_before: count,
  first_seen: z.boolean(),
});

const job = z.object({
  id: count,
  path: z.string(),
  state: z.enum([
    'planned',
    'submitting',
    'active',
    'completed',
    'failed',
    'archived',
    'unconfirmed',
    'refused',
  ]),
  remote_status: z.string().nullable(),
  pr_link: z.string().nullable(),
  planned_at: timestampColumn,
  ended_at: timestampColumn.nullable(),
  note: z.string().nullable(),
});

/** What the queries of `reports/weekly` answer. */
export const weeklyRows = z.object({
  weeks: z.array(week),
  week_days: z.array(weekDay),
  daily_views: z.array(z.object({ day: dayColumn, average_drawn: z.boolean() })),
  pages: z.object({ read: count, ever_seen: count, first_seen: count }),
  most_read: z.array(mostRead),
  agent_work: z.array(job),
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
export type MostReadRow = z.infer<typeof mostRead>;
export type JobRow = z.infer<typeof job>;
export type HistoryRow = z.infer<typeof weeklyRows>['history'];
