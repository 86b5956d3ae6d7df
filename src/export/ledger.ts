import { z } from 'zod';
import { type ViewCounts, viewCountsSchema, type ViewsResponse } from '../api/schema.js';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import { addDays, type Day, dayOf, lastEndedDay } from '../day.js';
import { type CountedPath, rowsOfCounts } from '../history/day-counts.js';
import { type StoredDay, type StoredDays, type StoredState, storedStateColumn } from '../history/days.js';
import type { Reader } from '../history/query.js';
import type { HistoryStore } from '../history/store.js';
import { type DayFailure, type DayOf, readDayFailures } from '../state/days.js';
import type { State } from '../state/state.js';
import { equalCounts, NO_VIEWS } from './totals.js';
import type { StoredViews } from './walk.js';

const DAY_LEDGER = readSql(import.meta.url, 'statements/day-ledger.sql');

/** The reliability of a day that was ever requested: `failed` if the last attempt was. */
export type DayState = StoredState | 'failed';

/** What is known of a day: as it is stored, and if the last attempt failed, when, how often and why. */
export interface DayRecord extends ViewCounts {
  readonly day: Day;
  readonly state: DayState;
  readonly is_stored: boolean;
  readonly attempted_at: Date;
  readonly pages: number | null;
  /** Attempts in a row that failed, or nights in a row in which it did not add up. */
  readonly failures: number;
  /** Why the last one failed or did not add up. */
  readonly failure: string | null;
}
export type DayLedger = ReadonlyMap<Day, DayRecord>;

/** Days in a row of which the first stands for all, as `readDayRuns` returns them. */
export const dayRun = viewCountsSchema.extend({
  day: dayColumn,
  state: storedStateColumn,
  attempted_at: timestampColumn,
  pages: z.int(),
  failures: z.int(),
  failure: z.string().nullable(),
  days: z.int(),
});
export type DayRun = z.infer<typeof dayRun>;

/**
 * Every stored day of a project, oldest first. Final days before `since` that have views, or none, as the one before are
 * left out: only their state is right, and whether they have views.
 */
export const readDayRuns = (reader: Reader, project: string, since: Day): Promise<DayRun[]> =>
  reader.query(DAY_LEDGER, dayRun, { project, since });

const runOf = ({
  day,
  state,
  checked_at,
  human,
  ai,
  total,
  pages,
  problem,
  nights_in_doubt,
}: StoredDay): DayRun => ({
  day,
  state,
  attempted_at: checked_at,
  human,
  ai,
  total,
  pages,
  failures: nights_in_doubt,
  failure: problem,
  days: 1,
});

/** The record of each day that was ever requested, oldest first. */
export function dayLedger(runs: readonly DayRun[], failures: readonly DayFailure[]): DayLedger {
  const ledger = new Map<Day, DayRecord>();
  for (const run of runs) {
    const record = { ...run, is_stored: true };
    for (let later = 0; later < run.days; later++) ledger.set(addDays(run.day, later), record);
  }
  for (const failure of failures) {
    const stored = ledger.get(failure.day);
    // A process was killed after it stored the day.
    if (stored !== undefined && failure.attempted_at < stored.attempted_at) continue;
    const empty = { ...NO_VIEWS, is_stored: false, pages: null };
    ledger.set(failure.day, { ...(stored ?? empty), ...failure, state: 'failed' });
  }
  return new Map([...ledger].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** What reads the stored days of a project: a version of the history, or the worker's store. */
export interface DaysReader {
  readonly storedDays: (project: string) => Promise<StoredDays>;
}

/** Where stored days and failed attempts are read from. */
export interface DayStores {
  readonly history: DaysReader;
  readonly state: State;
}

/** What is known of all days. */
export async function readDayLedger({ history, state }: DayStores, project: string): Promise<DayLedger> {
  const runs = [...(await history.storedDays(project)).values()].map(runOf);
  return dayLedger(runs, readDayFailures(state, project));
}

/** How far back the nightly check looks. Older days are checked by `audit`. */
const RECENT_DAYS = 35;

/** The first of the days that the nightly check looks at. */
export const recentSince = (now: Date): Day => addDays(lastEndedDay(now), -RECENT_DAYS);

/** Final days, oldest first, but for those read on `today`: only final days are expected not to change. */
export const settledTotals = (ledger: DayLedger, today?: Day): DayRecord[] =>
  [...ledger.values()].filter((record) => record.state === 'final' && dayOf(record.attempted_at) !== today);

/** The days that the nightly check looks at, oldest first: not those that were read today. */
export function recentTotals(ledger: DayLedger, now: Date): DayRecord[] {
  const [since, last] = [recentSince(now), lastEndedDay(now)];
  return settledTotals(ledger, dayOf(now)).filter(({ day }) => day >= since && day <= last);
}

/** The stored data of a day; undefined if there is none. */
export async function readStoredViews(
  history: HistoryStore,
  { project, day }: DayOf,
): Promise<StoredViews | undefined> {
  const totals = (await history.storedDays(project)).get(day);
  return totals && { totals, counts: await history.countsOfDay(project, day) };
}

/** Whether the platform's first page of a day, with its totals, is stored. The API promises no order, so any rows will do. */
export async function isAsStored(
  history: HistoryStore,
  { project, day }: DayOf,
  { totals, views, hasMore }: ViewsResponse,
): Promise<boolean> {
  const stored = (await history.storedDays(project)).get(day);
  if (stored === undefined || !equalCounts(stored, totals)) return false;
  if (views.length !== stored.pages && !(hasMore && views.length >= 1 && views.length < stored.pages))
    return false;
  const paths = await history.pathsOf(project);
  const rows = new Map(
    rowsOfCounts(await history.countsOfDay(project, day)).map((row) => [row.path, row] as const),
  );
  return views.every((row) => isSameRow(rows.get(paths.idOf(row.path)), row));
}

const isSameRow = (stored: CountedPath | undefined, row: ViewCounts): boolean =>
  stored !== undefined && equalCounts(stored, row);
