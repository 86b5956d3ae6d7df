import { z } from 'zod';
import { dayColumn } from '../warehouse/query.js';

/** What speaks for a page, as stored with its job. Views are people's and AI's, over the last whole weeks, 8 at most. */
export const evidenceColumns = {
  /** Medians of a week. */
  weekly_human: z.number(),
  weekly_ai: z.number(),
  /** 1 is the most read page. */
  human_rank: z.int(),
  ai_rank: z.int(),
  /** Null without human views. */
  ai_per_human: z.number().nullable(),
  /** The newer half of the weeks against the older, as a ratio of change; null without views before. */
  trend: z.number().nullable(),
  /** Oldest first. */
  weeks: z.array(z.object({ week: dayColumn, human: z.int(), ai: z.int() })),
};
export const evidenceRow = z.object(evidenceColumns);
export type Evidence = z.infer<typeof evidenceRow>;

/** Of a job whose evidence was not kept. */
export const NO_EVIDENCE: Evidence = {
  ...{ weekly_human: 0, weekly_ai: 0, human_rank: 0, ai_rank: 0 },
  ...{ ai_per_human: null, trend: null, weeks: [] },
};
