import { z } from 'zod';
import { storablePath } from '../format/text.js';

/**
 * The documented interface as schemas: as tolerant as servers in the field ask for, and no more. Only `id` and
 * `status` of a job are required; a status the document does not name is kept as the server's own word; fields that
 * the document does not name are ignored.
 */

/** Bounds that the interface states. */
export const LIMITS = {
  viewsPage: { min: 1, max: 250, default: 50 },
  promptMin: 1,
  usesPerHour: 100,
} as const;

/** The statuses at which polling ends. Every other one, known or not, means "still going". */
export const ENDED_STATUSES = ['completed', 'archived', 'failed'] as const;

export const agentJobSchema = z.object({
  id: z.string().min(1),
  status: z.string().min(1),
  source: z.object({ repository: z.string().nullish(), ref: z.string().nullish() }).nullish(),
  model: z.string().nullish(),
  prLink: z.string().nullish(),
  createdAt: z.string().nullish(),
  archivedAt: z.string().nullish(),
});
/** An agent job as the server tells it (interface 2.1). */
export type AgentJob = z.infer<typeof agentJobSchema>;

const count = z.int().min(0);

export const viewCountsSchema = z.object({ human: count, ai: count, total: count });
/** Views, in whole requests, by kind of traffic (interface 2.2). */
export type ViewCounts = z.infer<typeof viewCountsSchema>;

export const pageViewsSchema = viewCountsSchema.extend({ path: z.string().transform(storablePath) });
/** Views of one page (interface 2.3). */
export type PageViews = z.infer<typeof pageViewsSchema>;

export const viewsResponseSchema = z.object({
  totals: viewCountsSchema,
  views: z.array(pageViewsSchema),
  hasMore: z.boolean(),
});
/** One page of the views export (interface 2.4). `totals` covers the whole date range, not this page. */
export type ViewsResponse = z.infer<typeof viewsResponseSchema>;

/** The error bodies seen in the field: `{error, details?}`. */
export const errorBodySchema = z.object({
  error: z.string(),
  details: z.array(z.object({ message: z.string() })).optional(),
});
