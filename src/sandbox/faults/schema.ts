import { z } from 'zod';

/** Names of the API's operations in faults and in the request log. */
const OPERATIONS = ['views', 'create', 'message', 'job'] as const;
export type Operation = (typeof OPERATIONS)[number];

const aim = {
  /** The requests it applies to. */
  on: z.enum([...OPERATIONS, 'any']),
  /** Number of matching requests to let through first. */
  after: z.int().min(0).default(0),
  /** How often it applies; undefined: until cleared. */
  times: z.int().min(1).optional(),
};
const fault = <Kind extends string, Shape extends z.core.$ZodLooseShape>(kind: Kind, shape: Shape) =>
  z.strictObject({ ...aim, kind: z.literal(kind), ...shape });

/**
 * Faults before a request is handled, after it was handled (the job then exists, whatever the caller sees), or in the
 * paging of views.
 */
export const faultSchema = z.discriminatedUnion('kind', [
  /** Waits in real time, then continues; the only kind that allows another fault on the same request. */
  fault('latency', { delayMs: z.int().min(0) }),
  fault('rate-limit', {
    retryAfter: z.enum(['seconds', 'date', 'none']).default('seconds'),
    seconds: z.int().min(0).default(30),
    body: z.enum(['json', 'text']).default('json'),
  }),
  fault('status', { status: z.int().min(400).max(599), message: z.string().optional() }),
  /** The connection is reset before the request is handled. */
  fault('reset', {}),
  /** Never responds. */
  fault('timeout', {}),

  /** The request is handled, and the connection is reset instead of a reply. */
  fault('lost-reply', {}),
  /** The request is handled, and the reply is an error. */
  fault('status-after', { status: z.int().min(500).max(599).default(500), message: z.string().optional() }),
  /** The reply announces its full length but ends in the middle. */
  fault('cut-body', {}),
  /** 200 with a web page, as from a proxy or a wrong base URL. */
  fault('html', {}),
  /** A field is missing from the reply, wherever it occurs. */
  fault('missing-field', { field: z.string().min(1) }),
  /** A count of the first page of views is negative. */
  fault('negative-count', {}),

  /** `hasMore` is always true; past the end, the last rows are repeated, or there are none. */
  fault('endless', { beyond: z.enum(['last-page', 'nothing']) }),
  /** A page already read gets a view during the walk: from the second page on, the totals are one higher. */
  fault('counts-move', {}),
  /** Rows move between two pages of a walk: one path is repeated, another is missing, and totals stay the same. */
  fault('order-moves', {}),
]);
export type Fault = z.infer<typeof faultSchema>;
/** A fault as given by a caller, who may omit defaults. */
export type FaultInput = z.input<typeof faultSchema>;

export type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { kind: Kind }>;
export type PagingFault = FaultOf<'endless' | 'counts-move' | 'order-moves'>;
