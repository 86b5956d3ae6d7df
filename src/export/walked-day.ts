import type { UnreadableRow, ViewCounts } from '../api/schema.js';
import { counted, percent, thousands } from '../format/numbers.js';
import type { DayCounts } from '../history/days.js';
import type { DayRows } from './day-rows.js';

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

/** A day as it was read. Rows that could not be read are a `doubt` before any other. */
export const walkedDay = (
  { totals, counts, unattributed }: Omit<WalkedDay, 'doubt'>,
  unreadable: readonly UnreadableRow[],
  doubt?: string,
): WalkedDay => ({
  totals,
  counts,
  unattributed,
  doubt: unreadable.length === 0 ? doubt : unreadableWords(unreadable),
});

/** Why a day that reads the same twice does not add up; undefined if the difference is small. */
export function doubtOf({ totals, unattributed: { human, ai, total } }: DayRows): string | undefined {
  const share = Math.max(Math.abs(total), Math.abs(human) + Math.abs(ai)) / Math.max(1, totals.total);
  return share <= MAX_UNATTRIBUTED_SHARE
    ? undefined
    : `its pages and its totals differ by ${percent(share)}; ${LATER}`;
}

function unreadableWords(unreadable: readonly UnreadableRow[]): string {
  const [first] = unreadable;
  const place = first === undefined ? '' : `row ${thousands(first.index + 1)} (${first.why})`;
  const rows = unreadable.length === 1 ? place : `${counted(unreadable.length, 'row')}, such as ${place}`;
  return `the platform sent ${rows}, which cannot be read; ${LATER}`;
}
