import { z } from 'zod';
import { LIMITS, type ViewsResponse } from '../api/schema.js';
import { type Day, dayOf, parseDay } from '../day.js';
import { invalid, type PageOfViews, type SandboxContext, tooMany } from './access.js';
import type { Traffic } from './traffic/traffic.js';

const dateTime = z.iso.datetime({ offset: true, local: true });
const ZONE = /(Z|[+-]\d{2}:\d{2})$/;

/** A day, or a date-time, which counts as its UTC day. */
const date = (name: string) =>
  z.string().transform((text, context): Day => {
    const day = parseDay(text);
    if (day !== undefined) return day;
    if (dateTime.safeParse(text).success) return dayOf(new Date(ZONE.test(text) ? text : `${text}Z`));
    context.addIssue({ code: 'custom', message: `${name} must be a date, YYYY-MM-DD or ISO 8601: ${text}` });
    return z.NEVER;
  });

const integer = (name: string, min: number, max: number) => {
  const error = `${name} must be an integer of at least ${min}${max < Infinity ? ` and at most ${max}` : ''}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, { error })
    .transform(Number)
    .refine((number) => number >= min && number <= max, { error });
};

const { min, max, default: defaultLimit } = LIMITS.viewsPage;

/** The query of the views export (4.4). `dateTo` is exclusive. A range may be empty but not reversed. */
const querySchema = z
  .object({
    dateFrom: date('dateFrom').optional(),
    dateTo: date('dateTo').optional(),
    limit: integer('limit', min, max).default(defaultLimit),
    offset: integer('offset', 0, Infinity).default(0),
  })
  .refine(({ dateFrom, dateTo }) => dateFrom === undefined || dateTo === undefined || dateFrom <= dateTo, {
    error: 'dateFrom must not be after dateTo',
  });

/** One page: the range's totals, and its rows from `offset` on. */
export const pageOf: PageOfViews = ({ totals, rows }, { limit, offset }) => ({
  totals,
  views: rows.slice(offset, offset + limit),
  hasMore: offset + limit < rows.length,
});

/** The route of the views export (4.4). Every request with a valid key counts, even an invalid one. */
export function getViews(traffic: Traffic, now: () => Date, viewsPerHour: number | 'unlimited') {
  const uses: Date[] = [];
  return (c: SandboxContext): Response => {
    if (viewsPerHour !== 'unlimited') {
      const refusal = tooMany(c, uses, viewsPerHour, now());
      if (refusal !== undefined) return refusal;
      uses.push(now());
    }
    const parsed = querySchema.safeParse(c.req.query());
    if (!parsed.success) return invalid(c, parsed.error);
    const { dateFrom, dateTo, ...window } = parsed.data;
    const range = traffic.viewsIn({ from: dateFrom, to: dateTo }, now());
    return c.json<ViewsResponse>((c.get('pageOf') ?? pageOf)(range, window));
  };
}
