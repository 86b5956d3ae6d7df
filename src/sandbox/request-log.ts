import type { Operation } from './faults/schema.js';

/** A request to the interface, as its caller saw it. */
interface LoggedRequest {
  readonly operation: Operation;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Null while there is no reply: under way, hanging, or its connection reset. */
  readonly status: number | null;
}

/** `counts.views['200']` is the number of such replies; `none` counts the requests without one. */
export interface RequestSummary {
  readonly counts: Partial<Record<Operation, Record<string, number>>>;
  /** The latest requests, oldest first. */
  readonly recent: readonly LoggedRequest[];
}

export interface RequestLog {
  /** Notes a request that has arrived; to be called back with the status of its reply, if it gets one. */
  readonly arrived: (request: Omit<LoggedRequest, 'status'>) => (status: number) => void;
  readonly summary: () => RequestSummary;
}

const RECENT_KEPT = 1000;

/** `onRequest` is told of each request as it arrives. */
export function createRequestLog(onRequest: (operation: Operation) => void = () => undefined): RequestLog {
  const counts = new Map<Operation, Map<string, number>>();
  const recent: { operation: Operation; method: string; url: string; status: number | null }[] = [];
  const count = (operation: Operation, status: string, by: 1 | -1): void => {
    const statuses = counts.get(operation) ?? new Map<string, number>();
    counts.set(operation, statuses.set(status, (statuses.get(status) ?? 0) + by));
    if (statuses.get(status) === 0) statuses.delete(status);
  };
  return {
    arrived: (request) => {
      const entry = { ...request, status: null as number | null };
      recent.push(entry);
      if (recent.length > RECENT_KEPT) recent.shift();
      count(request.operation, 'none', 1);
      onRequest(request.operation);
      return (status) => {
        entry.status = status;
        count(request.operation, 'none', -1);
        count(request.operation, String(status), 1);
      };
    },
    summary: () => ({
      counts: Object.fromEntries(
        [...counts].map(([operation, statuses]) => [operation, Object.fromEntries(statuses)]),
      ),
      recent: recent.map((request) => ({ ...request })),
    }),
  };
}
