import { setTimeout } from 'node:timers/promises';
import type { MiddlewareHandler } from 'hono';
import type { SandboxContext, SandboxEnv } from '../http.js';
import {
  cutReply,
  edited,
  errorReply,
  rateLimited,
  resetConnection,
  webPage,
  withNegativeCount,
  withoutField,
} from './reply.js';
import type { Operation } from './schema.js';
import type { Struck, Switchboard } from './switchboard.js';

export interface FaultSurroundings {
  readonly switchboard: Switchboard;
  readonly now: () => Date;
  /** Aborted when the sandbox closes: a delayed request then ends unhandled. */
  readonly closing: AbortSignal;
}

/** Handles the request unless the fault comes first, and then spoils the reply if the fault comes last. */
async function strike(
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
      // The server destroys the connection when it closes; nothing holds the promise, so it goes too.
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
      return webPage();
    case 'missing-field':
      await handle();
      return edited(c, (body) => withoutField(body, fault.field));
    case 'negative-count':
      await handle();
      return edited(c, withNegativeCount);
  }
}

/** The one place where faults happen: around everything else that handles an operation. */
export const faults = (
  operation: Operation,
  { switchboard, now, closing }: FaultSurroundings,
): MiddlewareHandler<SandboxEnv> => {
  return async (c, next) => {
    const { delayMs, fault } = switchboard.strike(operation);
    if (delayMs > 0) await setTimeout(delayMs, undefined, { signal: closing, ref: false });
    if (fault === undefined) {
      await next();
      return;
    }
    const reply = await strike(c, fault, next, now);
    if (reply === undefined) return;
    // Assigned in two steps, because a reply laid over another keeps the headers of both.
    c.res = undefined;
    c.res = reply;
  };
};
