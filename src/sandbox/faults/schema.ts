import { z } from 'zod';

/** The operations of the API, as faults and the request log name them. */
const OPERATIONS = ['views', 'create', 'message', 'job'] as const;
export type Operation = (typeof OPERATIONS)[number];

const aim = {
  /** The requests it strikes. */
  on: z.enum([...OPERATIONS, 'any']),
  /** Matching requests let through first. */
  after: z.int().min(0).default(0),
  /** How often it strikes; undefined: until cleared. */
  times: z.int().min(1).optional(),
};
const fault = <Kind extends string, Shape extends z.core.$ZodLooseShape>(kind: Kind, shape: Shape) =>
  z.strictObject({ ...aim, kind: z.literal(kind), ...shape });

/**
 * Everything that can go wrong: before the request is handled, after it was (the job then exists,
 * whatever the caller hears), or in the paging of views.
 */
export const faultSchema = z.discriminatedUnion('kind', [
  /** Waits in real time, then continues; the only kind after which another fault strikes the same request. */
  fault('latency', { delayMs: z.int().min(0) }),
  fault('rate-limit', {
    retryAfter: z.enum(['seconds', 'date', 'none']).default('seconds'),
    seconds: z.int().min(0).default(30),
    body: z.enum(['json', 'text']).default('json'),
  }),
  fault('status', { status: z.int().min(400).max(599), message: z.string().optional() }),
  /** The connection is reset before the request is handled. */
  fault('reset', {}),
  /** Never answers. */
  fault('timeout', {}),

  /** The request is handled, and the connection reset instead of the reply. */
  fault('lost-reply', {}),
  /** The request is handled, and the reply is an error. */
  fault('status-after', { status: z.int().min(500).max(599).default(500), message: z.string().optional() }),
  /** The reply is announced whole and breaks off in the middle. */
  fault('cut-body', {}),
  /** 200 with a web page, as a proxy or a wrong base URL answers. */
  fault('html', {}),
  /** A field is missing from the reply, wherever it occurs. */
  fault('missing-field', { field: z.string().min(1) }),
  /** A count of the first page of views is negative. */
  fault('negative-count', {}),

  /** `hasMore` is always true; past the end the last rows come again, or none. */
  fault('endless', { beyond: z.enum(['last-page', 'nothing']) }),
  /** A page already read gets a view while a day is walked: from the second page on, the totals are one higher. */
  fault('counts-move', {}),
  /** Rows change places between two pages of a walk: a path comes twice, another never, totals stay. */
  fault('order-moves', {}),
]);
export type Fault = z.infer<typeof faultSchema>;
/** A fault as a caller writes it: defaults may be omitted. */
export type FaultInput = z.input<typeof faultSchema>;

export type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { kind: Kind }>;
export type PagingFault = FaultOf<'endless' | 'counts-move' | 'order-moves'>;
