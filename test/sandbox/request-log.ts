import type { Middleware, SandboxContext, ServedOperation } from '../../src/sandbox/access.js';

/** A request to the API, as seen by its caller. */
interface LoggedRequest {
  readonly operation: ServedOperation;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Null if there is no reply: in progress, hanging, or its connection was reset. */
  status: number | null;
}

const RECENT_KEPT = 1000;

const unanswered = new WeakSet<SandboxContext>();

/** Says that the connection was reset instead of a reply. */
export const leaveUnanswered = (c: SandboxContext): void => void unanswered.add(c);

/** The requests that a sandbox gets, and its replies. */
export function createRequestLog() {
  const counts: Partial<Record<ServedOperation, Record<string, number>>> = {};
  const recent: LoggedRequest[] = [];
  const count = (operation: ServedOperation, status: string, by: 1 | -1): void => {
    const { [status]: before = 0, ...others } = counts[operation] ?? {};
    counts[operation] = before + by === 0 ? others : { ...others, [status]: before + by };
  };
  const logged = (operation: ServedOperation): Middleware => {
    return async (c, next) => {
      const { pathname, search } = new URL(c.req.url);
      const entry: LoggedRequest = { operation, method: c.req.method, url: pathname + search, status: null };
      recent.push(entry);
      if (recent.length > RECENT_KEPT) recent.shift();
      count(operation, 'none', 1);
      await next();
      if (unanswered.has(c)) return;
      entry.status = c.res.status;
      count(operation, 'none', -1);
      count(operation, String(entry.status), 1);
    };
  };
  return {
    logged,
    /**
     * The latest requests, oldest first, and the number of replies: `counts.views['200']`, and
     * `none` for requests without one.
     */
    summary: () => structuredClone({ counts, recent }),
  };
}
