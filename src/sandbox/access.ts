import type { HttpBindings } from '@hono/node-server';
import { addHours, differenceInSeconds, min } from 'date-fns';
import type { Context, MiddlewareHandler } from 'hono';
import type { z } from 'zod';
import type { ViewsResponse } from '../api/schema.js';
import { bodyWithin } from '../http-server.js';
import { SANDBOX } from './state.js';
import type { RangeViews } from './traffic/traffic.js';

/** Pages the views of a range, as the views export does. */
export type PageOfViews = (
  range: RangeViews,
  window: { readonly limit: number; readonly offset: number },
) => ViewsResponse;

/** The context of a request to the sandbox. Tests set its variables, to simulate failures. */
export interface SandboxEnv {
  Bindings: HttpBindings;
  Variables: {
    /** What pages the views instead of the sandbox. */
    pageOfRange?: PageOfViews;
  };
}
export type SandboxContext = Context<SandboxEnv>;
export type Middleware = MiddlewareHandler<SandboxEnv>;

/** The operations of the API. */
export type ServedOperation = 'views' | 'create' | 'message' | 'job';

/** 400 as servers of this API return it, with one message per problem. */
const badRequest = (c: SandboxContext, ...messages: readonly string[]): Response =>
  c.json({ error: 'Bad request', details: messages.map((message) => ({ message })) }, 400);

export const invalid = (c: SandboxContext, { issues }: z.ZodError): Response =>
  badRequest(c, ...issues.map(({ message }) => message));

/** 429, with the seconds to wait, if the rolling hour has no room for one more use. */
export function tooMany(
  c: SandboxContext,
  uses: readonly Date[],
  limit: number,
  now: Date,
): Response | undefined {
  const free = uses.map((use) => addHours(use, 1)).filter((at) => at > now);
  if (free.length < limit) return undefined;
  const seconds = differenceInSeconds(min([...free, addHours(now, 1)]), now, { roundingMethod: 'ceil' });
  return c.json({ error: 'Too many requests' }, 429, { 'Retry-After': String(seconds) });
}

const MAX_BODY_BYTES = 1024 * 1024;

/** Answers a JSON body that fits the schema; refuses any other with 400, and a large one with 413. */
export async function withBody<Body>(
  c: SandboxContext,
  schema: z.ZodType<Body>,
  answer: (body: Body) => Response,
): Promise<Response> {
  const body = await bodyWithin(MAX_BODY_BYTES, c.env.incoming);
  if (body === undefined)
    return c.json({ error: `The body is larger than ${MAX_BODY_BYTES} bytes. Send a shorter one.` }, 413);
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return badRequest(c, 'the body is not JSON');
  }
  const parsed = schema.safeParse(value);
  return parsed.success ? answer(parsed.data) : invalid(c, parsed.error);
}

/** Lets a request pass if its key grants `scope` in the project that its path names. */
export const access = (
  { apiKey, projectId }: { readonly apiKey: string; readonly projectId: string },
  scope: 'read' | 'write',
): Middleware => {
  return async (c, next) => {
    const key = /^Bearer +(\S+)$/i.exec(c.req.header('Authorization') ?? '')?.[1];
    if (key !== apiKey && key !== SANDBOX.readOnlyKey)
      return c.json({ error: 'Missing or invalid API key' }, 401);
    const asked = c.req.param('projectId') ?? '';
    if (asked !== projectId) return badRequest(c, `unknown project: ${asked}`);
    if (scope === 'write' && key !== apiKey) return c.json({ error: 'This API key is read-only' }, 403);
    return next();
  };
};
