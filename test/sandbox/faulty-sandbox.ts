import type { ViewsResponse } from '../../src/api/schema.js';
import { setTimeout } from 'node:timers/promises';
import type { Middleware, PageOfViews, SandboxContext, ServedOperation } from '../../src/sandbox/access.js';
import {
  pageOfRange,
  type Sandbox as OwnSandbox,
  type SandboxOptions,
  startSandbox as start,
} from '../../src/sandbox/index.js';
import { afterFile } from '../cleanup.js';
import { createRequestLog, leaveUnanswered } from './request-log.js';

type RangeViews = Parameters<PageOfViews>[0];
type ViewsWindow = Parameters<PageOfViews>[1];

/** A sandbox whose requests fail on demand. */
export interface Sandbox extends Omit<OwnSandbox, 'inspect'> {
  /** The requests so far, and what the sandbox knows. */
  readonly inspect: () => ReturnType<OwnSandbox['inspect']> & {
    requests: ReturnType<ReturnType<typeof createRequestLog>['summary']>;
  };
  /** Replaces the active faults. */
  readonly setFaults: (faults: readonly Fault[]) => void;
}

export interface WatchedOptions extends SandboxOptions {
  /** Called for each request as it arrives, with its path and query. */
  readonly onRequest?: (operation: ServedOperation, url: string) => void;
}

/** Serves a sandbox in which requests can be made to fail, until the tests of the file are over. */
export async function startSandbox({ onRequest, ...options }: WatchedOptions): Promise<Sandbox> {
  const switchboard = createSwitchboard();
  const closing = new AbortController();
  const log = createRequestLog();
  const faulty =
    (operation: ServedOperation): Middleware =>
    async (c, next) => {
      const { pathname, search } = new URL(c.req.url);
      onRequest?.(operation, pathname + search);
      const { delayMs, fault } = switchboard.strike(operation);
      // Once it is closing, no delayed request is handled.
      if (delayMs > 0) await setTimeout(delayMs, undefined, { signal: closing.signal, ref: false });
      if (fault === undefined) return next();
      const reply = await replyOf(c, fault, next, options.now);
      if (reply === undefined) return;
      // Assigned in two steps, because a reply assigned over another keeps the headers of both.
      c.res = undefined;
      c.res = reply;
    };
  const sandbox = await start({
    ...options,
    around: (operation) => async (c, next) => {
      await log.logged(operation)(c, async () => {
        await faulty(operation)(c, next);
      });
    },
  });
  let closed: Promise<void> | undefined;
  const close = () => {
    closing.abort();
    return (closed ??= sandbox.close());
  };
  afterFile(close);
  const inspect = () => ({ requests: log.summary(), ...sandbox.inspect() });
  return { ...sandbox, inspect, setFaults: switchboard.set, close };
}

interface Aim {
  /** The requests it applies to. */
  readonly on: ServedOperation | 'any';
  /** Number of matching requests to let through first. */
  readonly after?: number | undefined;
  /** How often it applies; undefined: until cleared. */
  readonly times?: number | undefined;
}

/** Before a request is handled, after it was handled (the job then exists), or in the paging of views. */
export type Fault = Aim & (FaultOfAny | FaultOfViews);

type FaultOfAny =
  /** Waits in real time, then continues; the only kind that allows another fault on the same request. */
  | { readonly kind: 'latency'; readonly delayMs: number }
  | ({ readonly kind: 'rate-limit' } & RateLimit)
  | { readonly kind: 'status'; readonly status: number; readonly message?: string }
  /** The connection is reset before the request is handled. */
  | { readonly kind: 'reset' }
  /** Never responds. */
  | { readonly kind: 'timeout' }
  /** The request is handled, and the connection is reset instead of a reply. */
  | { readonly kind: 'lost-reply' }
  /** The request is handled, and the reply is an error. */
  | { readonly kind: 'status-after'; readonly status?: number; readonly message?: string }
  /** The reply announces its full length but ends in the middle. */
  | { readonly kind: 'cut-body' }
  /** 200 with a web page, as from a proxy or a wrong base URL. */
  | { readonly kind: 'html' }
  /** A field is missing from the reply, wherever it occurs. */
  | { readonly kind: 'missing-field'; readonly field: string };

type FaultOfViews =
  /** A count of the first page of views is negative. */
  | { readonly kind: 'negative-count' }
  /** `hasMore` is always true; past the end, the last rows are repeated, or there are none. */
  | { readonly kind: 'endless'; readonly beyond: 'last-page' | 'nothing' }
  /** A page already read gets a view during the walk: from the second page on, the totals are one higher. */
  | { readonly kind: 'counts-move' }
  /** Rows move between two pages of a walk: one path is repeated, another is missing, and totals stay the same. */
  | { readonly kind: 'order-moves' };

interface RateLimit {
  readonly retryAfter?: 'seconds' | 'date' | 'none';
  readonly seconds?: number;
  readonly body?: 'json' | 'text';
}

type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { kind: Kind }>;
type PagingFault = FaultOf<'endless' | 'counts-move' | 'order-moves'>;

/** A fault that changes the reply. A request can have one of these, after any delays. */
type ReplyFault = Exclude<Fault, FaultOf<'latency'>>;

/** Holds the active faults and decides which of them apply to a request. */
function createSwitchboard() {
  let armed: { fault: Fault; seen: number; struck: number }[] = [];
  return {
    /** Replaces all faults. */
    set: (faults: readonly Fault[]): void => {
      armed = faults.map((fault) => ({ fault, seen: 0, struck: 0 }));
    },
    /** Called once per request, which it counts for every matching fault. */
    strike: (operation: ServedOperation) => {
      let delayMs = 0;
      let struck: ReplyFault | undefined;
      for (const entry of armed) {
        const { fault } = entry;
        if (fault.on !== 'any' && fault.on !== operation) continue;
        entry.seen += 1;
        const due = entry.seen > (fault.after ?? 0) && entry.struck < (fault.times ?? Infinity);
        if (!due || struck !== undefined) continue;
        entry.struck += 1;
        if (fault.kind === 'latency') delayMs += fault.delayMs;
        else struck = fault;
      }
      return { delayMs, fault: struck };
    },
  };
}

/** The faulty reply; undefined to keep the handler's reply. */
async function replyOf(c: SandboxContext, fault: ReplyFault, handle: () => Promise<void>, now: () => Date) {
  if (fault.kind === 'rate-limit') return rateLimited(fault, now());
  if (fault.kind === 'status') return errorReply(fault);
  if (fault.kind === 'reset') return resetConnection(c);
  // The server cuts the connection when it closes, and nothing else awaits the promise.
  if (fault.kind === 'timeout') return new Promise<never>(() => undefined);
  const isPaging = fault.kind === 'endless' || fault.kind === 'counts-move' || fault.kind === 'order-moves';
  if (isPaging) c.set('pageOfRange', (range, window) => faultyPage(fault, range, window));
  await handle();
  if (isPaging) return undefined;
  switch (fault.kind) {
    case 'lost-reply':
      return resetConnection(c);
    case 'status-after':
      return errorReply(fault);
    case 'cut-body':
      return cutReply(c);
    case 'html':
      return new Response('<!doctype html><title>Welcome</title><h1>It works!</h1>', {
        headers: { 'Content-Type': 'text/html; charset=utf-8' },
      });
    case 'missing-field':
      return edited(c, (body) => withoutField(body, fault.field));
    case 'negative-count':
      return edited(c, withNegativeCount);
  }
}

const errorReply = ({ status = 500, message }: FaultOf<'status' | 'status-after'>) =>
  Response.json({ error: message ?? `Fault injected: ${status}` }, { status });

function rateLimited({ retryAfter = 'seconds', seconds = 30, body }: RateLimit, now: Date): Response {
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
  leaveUnanswered(c);
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
  Response.json(edit(JSON.parse(await c.res.text())), { status: c.res.status });

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

function endless(range: RangeViews, window: ViewsWindow, { beyond }: FaultOf<'endless'>): ViewsResponse {
  const lastOffset = Math.floor(Math.max(0, range.rows.length - 1) / window.limit) * window.limit;
  const offset = beyond === 'last-page' ? Math.min(window.offset, lastOffset) : window.offset;
  return { ...pageOfRange(range, { ...window, offset }), hasMore: true };
}

/** Adds a human view to a page that the walk has already read. */
const countsMoved = ({ totals, ...page }: ViewsResponse): ViewsResponse => ({
  ...page,
  totals: { ...totals, human: totals.human + 1, total: totals.total + 1 },
});

/** Moves the row before the page into it, so that the last row of the range is never returned. */
function orderMoved(range: RangeViews, window: ViewsWindow): ViewsResponse {
  const repeated = range.rows[window.offset - 1];
  if (repeated === undefined || window.offset >= range.rows.length) return pageOfRange(range, window);
  return pageOfRange(
    { ...range, rows: range.rows.toSpliced(window.offset, 0, repeated).slice(0, -1) },
    window,
  );
}

/** A page from a server whose rows move, or whose paging never ends. */
function faultyPage(fault: PagingFault, range: RangeViews, window: ViewsWindow): ViewsResponse {
  switch (fault.kind) {
    case 'endless':
      return endless(range, window, fault);
    case 'counts-move':
      return window.offset === 0 ? pageOfRange(range, window) : countsMoved(pageOfRange(range, window));
    case 'order-moves':
      return orderMoved(range, window);
  }
}
