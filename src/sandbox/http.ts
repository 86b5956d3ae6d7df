import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { z } from 'zod';
import type { PagingFault } from './faults/schema.js';

/** What a request carries on its way through the sandbox. */
export interface SandboxEnv {
  Bindings: HttpBindings;
  Variables: {
    /** Set by the faults in force, for the views route to answer with. */
    pagingFault?: PagingFault;
    /** The connection was taken away from the reply. */
    unanswered?: boolean;
  };
}
export type SandboxContext = Context<SandboxEnv>;

/** 400 as the interface's servers answer it: what is wrong, one message a fault. */
export const badRequest = (c: SandboxContext, messages: readonly string[]): Response =>
  c.json({ error: 'Bad request', details: messages.map((message) => ({ message })) }, 400);

export const unacceptable = (c: SandboxContext, { issues }: z.ZodError): Response =>
  badRequest(
    c,
    issues.map(({ message }) => message),
  );

export const tooMany = (c: SandboxContext, retryAfterSeconds: number): Response =>
  c.json({ error: 'Too many requests' }, 429, { 'Retry-After': String(retryAfterSeconds) });

const MAX_BODY_BYTES = 1024 * 1024;

/** The body as JSON; undefined if it is not JSON. Throws an `HTTPException`, 413, if it is too large. */
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
