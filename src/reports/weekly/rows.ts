import { z } from 'zod';
import { audienceColumn, AUDIENCES } from '../../format/audience.js';
import { dayColumn } from '../../columns.js';
import { noteRow } from '../charts.js';
import { jobRow } from '../jobs.js';

const count = z.number().int().nonnegative();

const week = z.object({
  week: dayColumn,
  human: count,
  ai: count,
  ai_share: z.number().nullable(),
  days_loaded: count,
  /** Days without any view, on a site that has them on all such weekdays. */
  outages: z.array(dayColumn),
});
/** A day's views; null if it is not loaded. */
export const dayViews = z.object({
  day: dayColumn,
  human: z.number().nonnegative().nullable(),
  ai: z.number().nonnegative().nullable(),
  is_outage: z.boolean(),
});
/** A full week of a page: its views, and the expected range if known. */
export const sparkWeek = z.object({
  ago: z.number().nonnegative(),
  views: z.number().nonnegative(),
  low: z.number().nullable(),
  high: z.number().nullable(),
});
const moved = z.object({
  /** The audience that moved, or moved further. */
  audience: audienceColumn,
  path: z.string(),
  human: count,
  ai: count,
  /** Null for an audience whose views are as expected. */
  human_expected: count.nullable(),
  ai_expected: count.nullable(),
  /** The audiences whose views of it changed as well, and not only those of most other pages. */
  changed: z.array(audienceColumn).default([...AUDIENCES]),
  /** The full weeks of that audience, of the last thirteen, oldest first. */
  weeks: z.array(sparkWeek),
});
const usual = z.object({
  week: dayColumn,
  audience: audienceColumn,
  /** Null with fewer than eight full weeks before. */
  low: count.nullable(),
  high: count.nullable(),
  expected: z.number().nullable(),
  weeks_used: count.nullable(),
  /** Full weeks known, including this one. */
  weeks: count,
  is_record: z.boolean(),
});
/** A page, or another address, whose views rose or fell most: those of the fourteen days to the end of the week. */
const cause = z.object({
  audience: audienceColumn,
  path: z.string(),
  is_page: z.boolean(),
  days: z.array(count).length(14),
});
const pageViews = z.object({ path: z.string(), human: count, ai: count });
/** The views of files and system addresses: the most viewed of them, and of those for AI. */
const notPages = z.object({ views: count, paths: z.array(z.string()), forAi: z.array(pageViews) });
const mostRead = pageViews.extend({
  /** Null if they cannot be compared with. */
  human_before: count.nullable(),
  ai_before: count.nullable(),
  /** Not new if too few days before are loaded to tell. */
  is_new: z
    .boolean()
    .nullable()
    .transform((isNew) => isNew ?? false),
});

/** What the queries of `reports/weekly` return. */
export const weeklyRows = z.object({
  weeks: z.array(week),
  daily_views: z.array(dayViews),
  pages: z.object({
    read: count,
    inAYear: count,
    new: count.nullable(),
    newPages: z.array(pageViews),
    notPages,
    mostRead: z.array(mostRead),
  }),
  usual: z.array(usual),
  causes: z.array(cause),
  notes: z.array(noteRow),
  moved: z.array(moved),
  /** Pages that one audience reads and the other rarely does, by the audience that reads them. */
  one_sided: z.object({ human: z.array(pageViews), ai: z.array(pageViews) }),
  /** `is_new`: ended in the week. */
  agent_work: z.array(jobRow.extend({ is_new: z.boolean().default(false) })),
});

export type WeeklyRows = z.infer<typeof weeklyRows>;
export type WeekRow = z.infer<typeof week>;
export type SparkWeek = z.infer<typeof sparkWeek>;
export type DayRow = z.infer<typeof dayViews>;
export type MovedRow = z.infer<typeof moved>;
export type UsualRow = z.infer<typeof usual>;
export type MostReadRow = z.infer<typeof mostRead>;
