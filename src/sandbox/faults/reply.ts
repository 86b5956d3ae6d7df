import type { SandboxContext } from '../http.js';
import { jsonOf } from '../http.js';
import type { FaultOf } from './schema.js';

/** Replies gone wrong, and connections taken away. */

// Tells the server adaptor that the reply was written, or never will be, past it.
const writtenElsewhere = (status: number): Response =>
  new Response(null, { status, headers: { 'x-hono-already-sent': 'true' } });

/** Resets the connection: the caller sees ECONNRESET and cannot know what became of its request. */
export function resetConnection(c: SandboxContext): Response {
  c.set('unanswered', true);
  c.env.incoming.socket.resetAndDestroy();
  return writtenElsewhere(200);
}

/** Announces the whole reply and breaks off in the middle of it. */
export async function cutReply(c: SandboxContext): Promise<Response> {
  const { status } = c.res;
  const whole = Buffer.from(await c.res.arrayBuffer());
  const { outgoing } = c.env;
  outgoing.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': whole.length });
  outgoing.write(whole.subarray(0, Math.floor(whole.length / 2)), () => outgoing.destroy());
  return writtenElsewhere(status);
}

export const webPage = (): Response =>
  new Response('<!doctype html><title>Welcome</title><h1>It works!</h1>', {
    headers: { 'Content-Type': 'text/html; charset=utf-8' },
  });

export const errorReply = (status: number, message = `Fault injected: ${status}`): Response =>
  Response.json({ error: message }, { status });

export function rateLimited({ retryAfter, seconds, body }: FaultOf<'rate-limit'>, now: Date): Response {
  const headers = new Headers();
  if (retryAfter === 'seconds') headers.set('Retry-After', String(seconds));
  if (retryAfter === 'date')
    headers.set('Retry-After', new Date(now.getTime() + seconds * 1000).toUTCString());
  if (body === 'text') return new Response('Too many requests', { status: 429, headers });
  return Response.json({ error: 'Too many requests' }, { status: 429, headers });
}

type Json = Record<string, unknown>;
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null;

/** The reply with its JSON body changed by `edit`. */
export async function edited(c: SandboxContext, edit: (body: unknown) => unknown): Promise<Response> {
  const { status } = c.res;
  return Response.json(edit(jsonOf(await c.res.text())), { status });
}

export function withoutField(value: unknown, field: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutField(item, field));
  if (!isJson(value)) return value;
  const kept = Object.entries(value).filter(([name]) => name !== field);
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutField(inner, field)]));
}

export function withNegativeCount(body: unknown): unknown {
  if (!isJson(body) || !Array.isArray(body['views'])) return body;
  const [first, ...rest] = body['views'] as unknown[];
  if (!isJson(first)) return body;
  return { ...body, views: [{ ...first, human: -1 }, ...rest] };
}
