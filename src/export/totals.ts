import type { ViewCounts } from '../api/schema.js';
import type { CountedPath } from '../history/days.js';

export const NO_VIEWS: ViewCounts = { human: 0, ai: 0, total: 0 };

export const sumCounts = (rows: Iterable<ViewCounts>): ViewCounts => {
  const sum = { ...NO_VIEWS };
  for (const { human, ai, total } of rows) {
    sum.human += human;
    sum.ai += ai;
    sum.total += total;
  }
  return sum;
};

export const addCounts = (left: ViewCounts, right: ViewCounts): ViewCounts => sumCounts([left, right]);

export const subtractCounts = (left: ViewCounts, right: ViewCounts): ViewCounts => ({
  human: left.human - right.human,
  ai: left.ai - right.ai,
  total: left.total - right.total,
});

export const equalCounts = (left: ViewCounts, right: ViewCounts): boolean =>
  left.human === right.human && left.ai === right.ai && left.total === right.total;

/**
 * Number of pages whose counts differ between two readings of a day, including new and vanished
 * pages and extra rows of a repeated path, in any order.
 */
export function countChangedPages(before: readonly CountedPath[], after: readonly CountedPath[]): number {
  const unmatched = new Map(before.map((row) => [row.path, row]));
  let changed = before.length - unmatched.size;
  for (const row of after) {
    const earlier = unmatched.get(row.path);
    unmatched.delete(row.path);
    if (earlier === undefined || !equalCounts(earlier, row)) changed++;
  }
  return changed + unmatched.size;
}
