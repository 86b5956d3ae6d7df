import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { z } from 'zod';
import type { PagingFault } from './faults/schema.js';

/** The context of a request to the sandbox. */
export interface SandboxEnv {
  Bindings: HttpBindings;
  Variables: {
    /** Set by an active fault, and applied by the views route. */
    pagingFault?: PagingFault;
    /** Whether the connection was reset instead of a reply. */
    unanswered?: boolean;
  };
}
export type SandboxContext = Context<SandboxEnv>;
type Middleware = MiddlewareHandler<SandboxEnv>;

/** 400 as servers of this API return it, with one message per problem. */
export const badRequest = (c: SandboxContext, messages: readonly string[]): Response =>
  c.json({ error: 'Bad request', details: messages.map((message) => ({ message })) }, 400);

export const invalid = (c: SandboxContext, { issues }: z.ZodError): Response =>
  badRequest(
    c,
    issues.map(({ message }) => message),
  );

export const tooMany = (c: SandboxContext, retryAfterSeconds: number): Response =>
  c.json({ error: 'Too many requests' }, 429, { 'Retry-After': String(retryAfterSeconds) });

const HOUR_MS = 3_600_000;

/** The uses within the rolling hour that ends at `now`. */
export const withinHour = (uses: readonly Date[], now: Date): Date[] =>
  uses.filter((use) => now.getTime() - use.getTime() < HOUR_MS);

/** Whole seconds until the rolling hour has room for one more use, as in `Retry-After`; undefined if it has. */
export function secondsUntilFree(uses: readonly Date[], limit: number, now: Date): number | undefined {
  const counted = withinHour(uses, now).sort((a, b) => a.getTime() - b.getTime());
  if (counted.length < limit) return undefined;
  const leaves = counted[counted.length - limit];
  const waitMs = leaves === undefined ? HOUR_MS : leaves.getTime() + HOUR_MS - now.getTime();
  return Math.max(1, Math.ceil(waitMs / 1000));
}

const MAX_BODY_BYTES = 1024 * 1024;

/** The body as JSON; undefined if it is not JSON. Throws an `HTTPException` (413) if it is too large. */
export async function bodyOf(c: SandboxContext): Promise<unknown> {
  const body: ReadableStream<Uint8Array> | null = c.req.raw.body;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) {
      const error = `The body is larger than ${MAX_BODY_BYTES} bytes. Send a shorter one.`;
      throw new HTTPException(413, { res: Response.json({ error }, { status: 413 }) });
    }
    chunks.push(chunk);
  }
  return jsonOf(Buffer.concat(chunks).toString());
}

/** The JSON value of a text; undefined if it is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export interface Keys {
  readonly apiKey: string;
  readonly readOnlyKey: string;
  readonly projectId: string;
}

/** Lets a request pass if its key grants `scope` in the project that its path names. */
export const access = ({ apiKey, readOnlyKey, projectId }: Keys, scope: 'read' | 'write'): Middleware => {
  return async (c, next) => {
    const key = /^Bearer +(\S+)$/i.exec(c.req.header('Authorization') ?? '')?.[1];
    if (key !== apiKey && key !== readOnlyKey) return c.json({ error: 'Missing or invalid API key' }, 401);
    const asked = c.req.param('projectId') ?? '';
    if (asked !== projectId) return badRequest(c, [`unknown project: ${asked}`]);
    if (scope === 'write' && key !== apiKey) return c.json({ error: 'This API key is read-only' }, 403);
    await next();
    return undefined;
  };
};

/**
 * Accepts only requests addressed to this machine, or to the name the sandbox listens on. A web page that uses DNS
 * rebinding sends its own host name, and is refused.
 */
export const ownHost = (name: string): Middleware => {
  return async (c, next) => {
    const port = c.env.incoming.socket.localPort ?? 0;
    const names = ['localhost', '127.0.0.1', '[::1]', name];
    const hosts = names.map((local) => new URL(`http://${local}:${port}`).host);
    const asked = c.req.header('Host') ?? '';
    if (!hosts.includes(asked.toLowerCase())) {
      const own = [...new Set(hosts)].join(', ');
      const error = `This sandbox does not serve the host "${asked}". Send requests to ${own}.`;
      return c.json({ error }, 403);
    }
    await next();
    return undefined;
  };
};
