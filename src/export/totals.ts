import type { UnreadableRow, ViewCounts } from '../api/schema.js';
import type { CountedPath, DayCounts } from '../history/days.js';
import { counted, percent, thousands } from '../format/numbers.js';

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

/** A day does not add up if a larger share of its views belongs to no page. */
const MAX_UNATTRIBUTED_SHARE = 0.05;

const LATER = 'it will be read again later';

export const MOVED = `rows moved while the day was read; ${LATER}`;

/** A stored day. */
export interface StoredViews {
  readonly totals: ViewCounts;
  readonly counts: DayCounts;
}

/** The result of a day's walks. */
export interface WalkedDay extends StoredViews {
  /** The site totals minus the sum of the rows. */
  readonly unattributed: ViewCounts;
  /** Why the rows are not reliable; undefined if they are. */
  readonly doubt: string | undefined;
}

/** Why a day that reads the same twice does not add up; undefined if the difference is small. */
export function doubtOf({ totals, unattributed }: Omit<WalkedDay, 'doubt'>): string | undefined {
  const { human, ai, total } = unattributed;
  const share = Math.max(Math.abs(total), Math.abs(human) + Math.abs(ai)) / Math.max(1, totals.total);
  return share <= MAX_UNATTRIBUTED_SHARE
    ? undefined
    : `its pages and its totals differ by ${percent(share)}; ${LATER}`;
}

/** Why a day with rows that cannot be read is not reliable; undefined without any. */
export function unreadableWords(unreadable: readonly UnreadableRow[]): string | undefined {
  const [first] = unreadable;
  if (first === undefined) return undefined;
  const place = `row ${thousands(first.index + 1)} (${first.why})`;
  const rows = unreadable.length === 1 ? place : `${counted(unreadable.length, 'row')}, such as ${place}`;
  return `the platform sent ${rows}, which cannot be read; ${LATER}`;
}
