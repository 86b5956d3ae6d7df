import { z } from 'zod';
import { storablePath } from '../format/text.js';

/**
 * The documented API as schemas, only as tolerant as real servers require. Only the `id` of a job is required, because
 * a created job cannot be found without it. An undocumented status is kept as the server sent it. Other fields that are
 * not as documented count as absent, and undocumented ones are ignored.
 */

/** Documented limits. */
export const LIMITS = {
  viewsPage: { min: 1, max: 250, default: 50 },
  promptMin: 1,
  usesPerHour: 100,
} as const;

/** No day has so many views. Below, sums of days are exact, in JavaScript and in JSON. */
export const TOO_MANY_VIEWS = 2 ** 50;

/** The status of a job, up to so many characters, without half of one at the end. */
export const jobStatus = z
  .string()
  .min(1)
  .transform((status) => status.slice(0, 200).replace(/[\ud800-\udbff]$/, ''));

/** As much as browsers open. */
const MAX_LINK = 2_000;

/** The statuses at which polling ends. Every other one, known or not, means "still going". */
export const ENDED_STATUSES = ['completed', 'archived', 'failed'] as const;

/** Whether an id could be part of an address: browsers and Node.js resolve `.` and `..` away. */
export const isJobId = (id: string): boolean => !/^\.{0,2}$/.test(id);

const NOT_AN_ID = 'not an id of a job';

export const agentJobSchema = z.object({
  /** Some servers have numbers. */
  id: z.union([z.string(), z.int().transform(String)], NOT_AN_ID).refine(isJobId, NOT_AN_ID),
  status: jobStatus.catch('unknown'),
  source: z.object({ repository: z.string().nullish(), ref: z.string().nullish() }).nullish().catch(null),
  model: z.string().nullish().catch(null),
  /** Some servers send its number instead of a link, which leads nowhere. */
  prLink: z.string().min(1).max(MAX_LINK).nullish().catch(null),
  createdAt: z.string().nullish().catch(null),
  archivedAt: z.string().nullish().catch(null),
});
/** An agent job as the server describes it (API 2.1). */
export type AgentJob = z.infer<typeof agentJobSchema>;

const count = z.int().min(0);

export const viewCountsSchema = z.object({ human: count, ai: count, total: count });
/** Views, in whole requests, by kind of traffic (API 2.2). */
export type ViewCounts = z.infer<typeof viewCountsSchema>;

export const pageViewsSchema = viewCountsSchema.extend({ path: z.string().transform(storablePath) });
/** Views of one page (API 2.3). */
export type PageViews = z.infer<typeof pageViewsSchema>;

/** The totals of a range may be wrong because of one day. That must not keep others from being loaded. */
const rangeCount = z
  .number()
  .min(0)
  .refine(Number.isInteger, 'expected a whole number')
  .transform((views) => Math.min(views, Number.MAX_SAFE_INTEGER));

export const viewsResponseSchema = z.object({
  totals: z.object({ human: rangeCount, ai: rangeCount, total: rangeCount }),
  views: z.array(pageViewsSchema),
  hasMore: z.boolean(),
});
/** One page of the views export (API 2.4). `totals` covers the whole date range, not this page. */
export type ViewsResponse = z.infer<typeof viewsResponseSchema>;
