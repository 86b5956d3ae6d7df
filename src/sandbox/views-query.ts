import { z } from 'zod';
import { LIMITS } from '../api/schema.js';
import { type Day, dayOf, parseDay } from '../day.js';

/**
 * The query of the views export (interface 4.4). A date-time stands for the UTC day it lies in; `dateTo` is
 * exclusive, so that day is not in the results. A range backwards is refused, an empty one is not.
 */

const dateTime = z.iso.datetime({ offset: true, local: true });
const ZONE = /(Z|[+-]\d{2}:\d{2})$/;

function dayFrom(text: string): Day | undefined {
  const day = parseDay(text);
  if (day !== undefined || !dateTime.safeParse(text).success) return day;
  return dayOf(new Date(ZONE.test(text) ? text : `${text}Z`));
}

const date = (name: string) =>
  z.string().transform((text, context): Day => {
    const day = dayFrom(text);
    if (day !== undefined) return day;
    context.addIssue({ code: 'custom', message: `${name} must be a date, YYYY-MM-DD or ISO 8601: ${text}` });
    return z.NEVER;
  });

const integer = (name: string, min: number, max: number) => {
  const message = `${name} must be an integer of at least ${min}${max < Infinity ? ` and at most ${max}` : ''}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: message })
    .transform(Number)
    .refine((number) => number >= min && number <= max, { error: message });
};

const { min, max, default: defaultLimit } = LIMITS.viewsPage;

export const viewsQuerySchema = z
  .object({
    dateFrom: date('dateFrom').optional(),
    dateTo: date('dateTo').optional(),
    limit: integer('limit', min, max).default(defaultLimit),
    offset: integer('offset', 0, Infinity).default(0),
  })
  .refine(({ dateFrom, dateTo }) => dateFrom === undefined || dateTo === undefined || dateFrom <= dateTo, {
    error: 'dateFrom must not be after dateTo',
  });
