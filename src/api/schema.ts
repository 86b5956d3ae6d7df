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
const jobStatus = z
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

/** A row that is not as documented. Other rows of its page are. */
export interface UnreadableRow {
  /** Its place among the rows, from 0. */
  readonly index: number;
  readonly why: string;
}

interface Rows {
  readonly views: PageViews[];
  readonly unreadable: UnreadableRow[];
}

/** Rows that are not as documented are named, unless all are: then it is another API. */
const rowsSchema = z.unknown().transform((rows, context): Rows => {
  const plain = plainRows(rows);
  if (plain !== undefined) return { views: plain, unreadable: [] };
  const { error } = z.array(pageViewsSchema).safeParse(rows);
  const found = readableRows(Array.isArray(rows) ? rows : []);
  if (found.views.length > 0) return found;
  for (const { path, message } of error?.issues ?? []) context.addIssue({ code: 'custom', path, message });
  return z.NEVER;
});

function readableRows(rows: readonly unknown[]): Rows {
  const all: Rows = { views: [], unreadable: [] };
  for (const [index, row] of rows.entries()) {
    const { data, error } = pageViewsSchema.safeParse(row);
    if (data !== undefined) all.views.push(data);
    const why = error?.issues.map(({ path, message }) => [...path, message].join(': ')).join(', ');
    if (why !== undefined) all.unreadable.push({ index, why });
  }
  return all;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Rows as `pageViewsSchema` returns them, in half its time; undefined if it refuses one of them, and has to say why. */
export function plainRows(rows: unknown): PageViews[] | undefined {
  if (!Array.isArray(rows)) return undefined;
  const checked: PageViews[] = [];
  for (const row of rows as (Partial<Record<keyof PageViews, unknown>> | null)[]) {
    const { path, human, ai, total } = row ?? {};
    if (typeof path !== 'string' || !isCount(human) || !isCount(ai) || !isCount(total)) return undefined;
    checked.push({ path: storablePath(path), human, ai, total });
  }
  return checked;
}

/** The totals of a range may be wrong because of one day. That must not keep others from being loaded. */
const rangeCount = z
  .number()
  .min(0)
  .refine(Number.isInteger, 'expected a whole number')
  .transform((views) => Math.min(views, Number.MAX_SAFE_INTEGER));

/** One page of the views export (API 2.4). `totals` covers the whole date range, not this page. */
export interface ViewsResponse {
  readonly totals: ViewCounts;
  readonly views: PageViews[];
  /** Rows of the page that are not in `views`, if there are any. */
  readonly unreadable?: readonly UnreadableRow[];
  readonly hasMore: boolean;
}

export const viewsResponseSchema = z
  .object({
    totals: z.object({ human: rangeCount, ai: rangeCount, total: rangeCount }),
    views: rowsSchema,
    hasMore: z.boolean(),
  })
  .transform(({ totals, views: { views, unreadable }, hasMore }): ViewsResponse => {
    const page = { totals, views, hasMore };
    return unreadable.length === 0 ? page : { ...page, unreadable };
  });

/**
 * The same for a page that is as documented: what the schema makes of a page survives garbage collection, which costs a
 * tenth of an export and 25 MB. Undefined for any other, of which the schema says what is wrong.
 */
function plainPage(json: unknown): ViewsResponse | undefined {
  const { totals, views, hasMore } = (json ?? {}) as Partial<Record<keyof ViewsResponse, unknown>>;
  const { human, ai, total } = (totals ?? {}) as Partial<Record<keyof ViewCounts, unknown>>;
  const rows = plainRows(views);
  if (rows === undefined || !isCount(human) || !isCount(ai) || !isCount(total)) return undefined;
  return typeof hasMore === 'boolean' ? { totals: { human, ai, total }, views: rows, hasMore } : undefined;
}

/** What `viewsResponseSchema` says of a response. */
export const pageOfViews = {
  safeParse: (json: unknown): z.ZodSafeParseResult<ViewsResponse> => {
    const page = plainPage(json);
    return page === undefined ? viewsResponseSchema.safeParse(json) : { success: true, data: page };
  },
};

/** How many rows a page has, readable or not. */
export const rowsOnPage = ({ views, unreadable = [] }: ViewsResponse): number =>
  views.length + unreadable.length;
