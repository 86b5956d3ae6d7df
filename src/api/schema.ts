import { z } from 'zod';
import { storablePath } from '../format/text.js';

/**
 * The documented API as schemas, only as tolerant as real servers require. Only the `id` and `status` of a job are
 * required, an undocumented status is kept as the server sent it, and undocumented fields are ignored.
 */

/** Documented limits. */
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
/** An agent job as the server describes it (API 2.1). */
export type AgentJob = z.infer<typeof agentJobSchema>;

const count = z.int().min(0);

export const viewCountsSchema = z.object({ human: count, ai: count, total: count });
/** Views, in whole requests, by kind of traffic (API 2.2). */
export type ViewCounts = z.infer<typeof viewCountsSchema>;

export const pageViewsSchema = viewCountsSchema.extend({ path: z.string().transform(storablePath) });
/** Views of one page (API 2.3). */
export type PageViews = z.infer<typeof pageViewsSchema>;

export const viewsResponseSchema = z.object({
  totals: viewCountsSchema,
  views: z.array(pageViewsSchema),
  hasMore: z.boolean(),
});
/** One page of the views export (API 2.4). `totals` covers the whole date range, not this page. */
export type ViewsResponse = z.infer<typeof viewsResponseSchema>;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

function readCounts(value: unknown): ViewCounts | undefined {
  if (!isRecord(value)) return undefined;
  const { human, ai, total } = value;
  return isCount(human) && isCount(ai) && isCount(total) ? { human, ai, total } : undefined;
}

/**
 * The result of `viewsResponseSchema` for a page of views, in a tenth of the time; undefined for anything that it
 * refuses, so that the schema can say why.
 */
export function readViewsResponse(value: unknown): ViewsResponse | undefined {
  if (!isRecord(value) || !Array.isArray(value['views'])) return undefined;
  const totals = readCounts(value['totals']);
  const { hasMore } = value;
  if (totals === undefined || typeof hasMore !== 'boolean') return undefined;
  const views: PageViews[] = [];
  for (const row of value['views'] as readonly unknown[]) {
    if (!isRecord(row)) return undefined;
    const { path, human, ai, total } = row;
    if (typeof path !== 'string' || !isCount(human) || !isCount(ai) || !isCount(total)) return undefined;
    views.push({ path: isPlain(path) ? path : storablePath(path), human, ai, total });
  }
  return { totals, views, hasMore };
}

/** Whether `storablePath` would not change it: it has no backslashes and no surrogates. */
const isPlain = (path: string): boolean => !/[\\\ud800-\udfff]/.test(path);
