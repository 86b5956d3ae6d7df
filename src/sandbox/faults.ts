import { setTimeout } from 'node:timers/promises';
import type { MiddlewareHandler } from 'hono';
import { jsonOf, type SandboxContext, type SandboxEnv } from '../access.js';
import { type Fault, type FaultInput, type FaultOf, faultSchema, type Operation } from './schema.js';

/** The faults of one request: delays first, then at most one fault of another kind. */
interface Struck {
  readonly delayMs: number;
  readonly fault: Exclude<Fault, FaultOf<'latency'>> | undefined;
}

/** Holds the active faults and decides which of them apply to a request. */
export function createSwitchboard() {
  let armed: { fault: Fault; seen: number; struck: number }[] = [];
  return {
    /** Replaces all faults. Throws a `ZodError` for an invalid one. */
    set: (faults: readonly FaultInput[]): void => {
      armed = faultSchema
        .array()
        .parse(faults)
        .map((fault) => ({ fault, seen: 0, struck: 0 }));
    },
    list: (): readonly Fault[] => armed.map(({ fault }) => fault),
    /** Called once per request, which it counts for every matching fault. */
    strike: (operation: Operation): Struck => {
      let delayMs = 0;
      let struck: Struck['fault'];
      for (const entry of armed) {
        const { fault } = entry;
        if (fault.on !== 'any' && fault.on !== operation) continue;
        entry.seen += 1;
        const due = entry.seen > fault.after && entry.struck < (fault.times ?? Infinity);
        if (!due || struck !== undefined) continue;
        entry.struck += 1;
        if (fault.kind === 'latency') delayMs += fault.delayMs;
        else struck = fault;
      }
      return { delayMs, fault: struck };
    },
  };
}

export type Switchboard = ReturnType<typeof createSwitchboard>;

export interface FaultOptions {
  readonly switchboard: Switchboard;
  readonly now: () => Date;
  /** Aborted when the sandbox closes; a delayed request is then never handled. */
  readonly closing: AbortSignal;
}

/** Applies faults around everything else that handles an operation. */
export const faults = (
  operation: Operation,
  { switchboard, now, closing }: FaultOptions,
): MiddlewareHandler<SandboxEnv> => {
  return async (c, next) => {
    const { delayMs, fault } = switchboard.strike(operation);
    if (delayMs > 0) await setTimeout(delayMs, undefined, { signal: closing, ref: false });
    if (fault === undefined) {
      await next();
      return;
    }
    const reply = await replyOf(c, fault, next, now);
    if (reply === undefined) return;
    // Assigned in two steps, because a reply assigned over another keeps the headers of both.
    c.res = undefined;
    c.res = reply;
  };
};

/** The faulty reply; undefined to keep the handler's reply. */
async function replyOf(
  c: SandboxContext,
  fault: NonNullable<Struck['fault']>,
  handle: () => Promise<void>,
  now: () => Date,
): Promise<Response | undefined> {
  switch (fault.kind) {
    case 'rate-limit':
      return rateLimited(fault, now());
    case 'status':
      return errorReply(fault.status, fault.message);
    case 'reset':
      return resetConnection(c);
    case 'timeout':
      // The server cuts the connection when it closes, and nothing else awaits the promise.
      return new Promise<never>(() => undefined);
    case 'endless':
    case 'counts-move':
    case 'order-moves':
      c.set('pagingFault', fault);
      await handle();
      return undefined;
    case 'lost-reply':
      await handle();
      return resetConnection(c);
    case 'status-after':
      await handle();
      return errorReply(fault.status, fault.message);
    case 'cut-body':
      await handle();
      return cutReply(c);
    case 'html':
      await handle();
      return new Response('<!doctype html><title>Welcome</title><h1>It works!</h1>', {
        headers: { 'Content-Type': 'text/html; charset=utf-8' },
      });
    case 'missing-field':
      await handle();
      return edited(c, (body) => withoutField(body, fault.field));
    case 'negative-count':
      await handle();
      return edited(c, withNegativeCount);
  }
}

const errorReply = (status: number, message = `Fault injected: ${status}`): Response =>
  Response.json({ error: message }, { status });

function rateLimited({ retryAfter, seconds, body }: FaultOf<'rate-limit'>, now: Date): Response {
  const headers = new Headers();
  if (retryAfter === 'seconds') headers.set('Retry-After', String(seconds));
  if (retryAfter === 'date')
    headers.set('Retry-After', new Date(now.getTime() + seconds * 1000).toUTCString());
  const error = 'Too many requests';
  if (body === 'text') return new Response(error, { status: 429, headers });
  return Response.json({ error }, { status: 429, headers });
}

/** Tells the server adapter not to write a reply. */
const writtenElsewhere = (status: number): Response =>
  new Response(null, { status, headers: { 'x-hono-already-sent': 'true' } });

/** The caller gets ECONNRESET and cannot know whether its request was handled. */
function resetConnection(c: SandboxContext): Response {
  c.set('unanswered', true);
  c.env.incoming.socket.resetAndDestroy();
  return writtenElsewhere(200);
}

/** Announces the full length of the reply but ends in the middle. */
async function cutReply(c: SandboxContext): Promise<Response> {
  const { status } = c.res;
  const whole = Buffer.from(await c.res.arrayBuffer());
  const { outgoing } = c.env;
  outgoing.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': whole.length });
  outgoing.write(whole.subarray(0, Math.floor(whole.length / 2)), () => outgoing.destroy());
  return writtenElsewhere(status);
}

const edited = async (c: SandboxContext, edit: (body: unknown) => unknown): Promise<Response> =>
  Response.json(edit(jsonOf(await c.res.text())), { status: c.res.status });

type Json = Record<string, unknown>;
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null;

function withoutField(value: unknown, field: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutField(item, field));
  if (!isJson(value)) return value;
  const kept = Object.entries(value).filter(([name]) => name !== field);
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutField(inner, field)]));
}

function withNegativeCount(body: unknown): unknown {
  if (!isJson(body) || !Array.isArray(body['views'])) return body;
  const [first, ...rest] = body['views'] as unknown[];
  return isJson(first) ? { ...body, views: [{ ...first, human: -1 }, ...rest] } : body;
}
