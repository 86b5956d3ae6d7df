import type { PageViews, ViewCounts } from '../api/schema.js';

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

export const subtractCounts = (left: ViewCounts, right: ViewCounts): ViewCounts => ({
  human: left.human - right.human,
  ai: left.ai - right.ai,
  total: left.total - right.total,
});

export const equalCounts = (left: ViewCounts, right: ViewCounts): boolean =>
  left.human === right.human && left.ai === right.ai && left.total === right.total;

/** How far two counts are apart: 0 when they are equal. */
export const distanceOfCounts = (left: ViewCounts, right: ViewCounts): number => {
  const { human, ai, total } = subtractCounts(left, right);
  return Math.abs(human) + Math.abs(ai) + Math.abs(total);
};

/**
 * Pages whose counts differ between two readings of a day, new and vanished ones included, and rows too many of a path
 * that stands there twice. Order does not matter.
 */
export function countChangedPages(before: readonly PageViews[], after: readonly PageViews[]): number {
  const unmatched = new Map(before.map((row) => [row.path, row]));
  let changed = before.length - unmatched.size;
  for (const row of after) {
    const earlier = unmatched.get(row.path);
    unmatched.delete(row.path);
    if (earlier === undefined || !equalCounts(earlier, row)) changed++;
  }
  return changed + unmatched.size;
}
