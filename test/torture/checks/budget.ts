import type { ServedOperation } from '../../../src/sandbox/access.js';
import type { Books } from '../books.js';

/** A request as the platform counted it, refused and lost ones included. */
export interface Arrival {
  readonly operation: ServedOperation;
  /** Path and query. */
  readonly url: string;
  readonly atMs: number;
}

const HOUR_MS = 3_600_000;
const PROMPTS_PER_HOUR = 100;

/** Rolling hours in which more requests arrived than allowed. */
export function budgetFaults(arrivals: readonly Arrival[], requestsPerHour: number | 'unlimited'): string[] {
  const timesOf = (...operations: ServedOperation[]) =>
    arrivals.filter(({ operation }) => operations.includes(operation)).map(({ atMs }) => atMs);
  return [
    ...hourFaults('requests', timesOf('views'), requestsPerHour === 'unlimited' ? Infinity : requestsPerHour),
    ...hourFaults('prompts', timesOf('create', 'message'), PROMPTS_PER_HOUR),
  ];
}

function hourFaults(what: string, times: readonly number[], limit: number): string[] {
  const sorted = [...times].sort((one, other) => one - other);
  const at = sorted.findIndex((time, index) => time - (sorted[index - limit] ?? -Infinity) < HOUR_MS);
  return at === -1
    ? []
    : [`more than ${limit} ${what} in the hour that ended ${new Date(sorted[at] ?? 0).toISOString()}`];
}

/** Requests of the last day that are not counted. `behindMs` is the largest delay of a command's clock. */
export function uncountedRequests(
  { requests }: Books,
  arrivals: readonly Arrival[],
  now: Date,
  behindMs: number,
): string[] {
  const sinceMs = now.getTime() - 24 * HOUR_MS;
  const recent = requests.filter(({ minute }) => Date.parse(minute) >= sinceMs - behindMs - 120_000);
  const counted = recent.reduce((sum, one) => sum + one.requests, 0);
  const arrived = arrivals.filter(({ operation, atMs }) => operation === 'views' && atMs >= sinceMs).length;
  return counted >= arrived ? [] : [`${arrived} requests arrived within a day, the state has ${counted}`];
}
