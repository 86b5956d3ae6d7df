import { Hono, type MiddlewareHandler } from 'hono';
import type { Agents } from './agents.js';
import { badRequest, bodyOf, invalid, type SandboxEnv } from './access.js';
import { faultSchema, type Operation } from './faults/schema.js';
import type { Switchboard } from './faults/strike.js';

/** A request to the API, as seen by its caller. */
interface LoggedRequest {
  readonly operation: Operation;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Null if there is no reply: in progress, hanging, or its connection was reset. */
  status: number | null;
}

/** `counts.views['200']` is the number of such replies; `none` counts the requests without one. */
export interface RequestSummary {
  readonly counts: Partial<Record<Operation, Record<string, number>>>;
  /** The latest requests, oldest first. */
  readonly recent: readonly Readonly<LoggedRequest>[];
}

const RECENT_KEPT = 1000;

/** `onRequest` is called for each request as it arrives. */
export function createRequestLog(onRequest: (operation: Operation) => void = () => undefined) {
  const counts: Partial<Record<Operation, Record<string, number>>> = {};
  const recent: LoggedRequest[] = [];
  const count = (operation: Operation, status: string, by: 1 | -1): void => {
    const { [status]: before = 0, ...others } = counts[operation] ?? {};
    counts[operation] = before + by === 0 ? others : { ...others, [status]: before + by };
  };
  const logged = (operation: Operation): MiddlewareHandler<SandboxEnv> => {
    return async (c, next) => {
      const { pathname, search } = new URL(c.req.url);
      const entry: LoggedRequest = { operation, method: c.req.method, url: pathname + search, status: null };
      recent.push(entry);
      if (recent.length > RECENT_KEPT) recent.shift();
      count(operation, 'none', 1);
      onRequest(operation);
      await next();
      if (c.get('unanswered') === true) return;
      entry.status = c.res.status;
      count(operation, 'none', -1);
      count(operation, String(entry.status), 1);
    };
  };
  const summary = (): RequestSummary => structuredClone({ counts, recent });
  return { logged, summary };
}

export type RequestLog = ReturnType<typeof createRequestLog>;

/**
 * Paths outside the API that need no key: the requests, the jobs with their prompts, and the active
 * faults (an array of `faultSchema`; PUT replaces all of them).
 */
export function inspection(log: RequestLog, agents: Agents, switchboard: Switchboard): Hono<SandboxEnv> {
  const app = new Hono<SandboxEnv>();
  app.get('/requests', (c) => c.json(log.summary()));
  app.get('/jobs', (c) => c.json({ jobs: agents.jobs() }));
  app.get('/faults', (c) => c.json({ faults: switchboard.list() }));
  app.put('/faults', async (c) => {
    const body = await bodyOf(c);
    if (body === undefined) return badRequest(c, ['the body is not JSON']);
    const parsed = faultSchema.array().safeParse(body);
    if (!parsed.success) return invalid(c, parsed.error);
    switchboard.set(parsed.data);
    return c.json({ faults: switchboard.list() });
  });
  app.delete('/faults', (c) => {
    switchboard.set([]);
    return c.json({ faults: [] });
  });
  return app;
}
