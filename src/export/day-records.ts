import { z } from 'zod';
import { type ViewCounts, viewCountsSchema } from '../api/schema.js';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import { addDays, type Day, dayOf, lastEndedDay } from '../day.js';
import { type StoredDay, type StoredDays, type StoredState, storedStateColumn } from '../history/days.js';
import type { Reader } from '../history/duckdb.js';
import { type DayFailure, readDayFailures } from '../state/days.js';
import type { State } from '../state/state.js';
import { NO_VIEWS } from './totals.js';

const DAY_RUNS = readSql(import.meta.url, 'statements/day-runs.sql');

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
export type DayRecords = ReadonlyMap<Day, DayRecord>;

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
type DayRun = z.infer<typeof dayRun>;

/**
 * Every stored day of a project, oldest first. Final days before `since` that have views, or none, as the one before are
 * left out: only their state is right, and whether they have views.
 */
export const readDayRuns = (reader: Reader, project: string, since: Day): Promise<DayRun[]> =>
  reader.query(DAY_RUNS, dayRun, { project, since });

const runOf = ({ checked_at, problem, nights_in_doubt, ...day }: StoredDay): DayRun => ({
  ...day,
  attempted_at: checked_at,
  failures: nights_in_doubt,
  failure: problem,
  days: 1,
});

/** The record of each day that was ever requested, oldest first. */
export function dayRecords(runs: readonly DayRun[], failures: readonly DayFailure[]): DayRecords {
  const records = new Map<Day, DayRecord>();
  for (const run of runs) {
    const record = { ...run, is_stored: true };
    for (let later = 0; later < run.days; later++) records.set(addDays(run.day, later), record);
  }
  for (const failure of failures) {
    const stored = records.get(failure.day);
    // A process was killed after it stored the day.
    if (stored !== undefined && failure.attempted_at < stored.attempted_at) continue;
    const empty = { ...NO_VIEWS, is_stored: false, pages: null };
    records.set(failure.day, { ...(stored ?? empty), ...failure, state: 'failed' });
  }
  return new Map([...records].sort(([one], [other]) => (one < other ? -1 : 1)));
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
export async function readDayRecords({ history, state }: DayStores, project: string): Promise<DayRecords> {
  const runs = [...(await history.storedDays(project)).values()].map(runOf);
  return dayRecords(runs, readDayFailures(state, project));
}

/** How far back the nightly check looks. Older days are checked by `audit`. */
const RECENT_DAYS = 35;

/** The first of the days that the nightly check looks at. */
export const recentSince = (now: Date): Day => addDays(lastEndedDay(now), -RECENT_DAYS);

/** Final days, oldest first, but for those read on `today`: only final days are expected not to change. */
export const finalDays = (records: DayRecords, today?: Day): DayRecord[] =>
  [...records.values()].filter((record) => record.state === 'final' && dayOf(record.attempted_at) !== today);

/** The days that the nightly check looks at, oldest first: not those that were read today. */
export function recentFinalDays(records: DayRecords, now: Date): DayRecord[] {
  const [since, last] = [recentSince(now), lastEndedDay(now)];
  return finalDays(records, dayOf(now)).filter(({ day }) => day >= since && day <= last);
}

const SETTLING = readSql(import.meta.url, 'statements/settling.sql');
export const settlingRow = z.object({
  restated_days: z.int(),
  oldest_change_days: z.int().nullable(),
  median_change_days: z.number(),
});
/** How long days took to settle, measured by loads that found changes. */
type Settling = z.infer<typeof settlingRow>;

export const NO_CHANGES: Settling = { restated_days: 0, oldest_change_days: null, median_change_days: 0 };

export async function readSettling(reader: Reader, project: string, now: Date): Promise<Settling> {
  const [row] = await reader.query(SETTLING, settlingRow, { project, now });
  return row ?? NO_CHANGES;
}

/**
 * The `settleDays` recommended by the measured changes, if one came at the very end of the wait: later ones may have been
 * missed. Undefined if the setting seems long enough: a shorter one would save a few requests, and risk changes.
 */
export function recommendedSettleDays(
  { oldest_change_days: oldest }: Settling,
  settleDays: number,
): number | undefined {
  return oldest !== null && oldest >= settleDays ? oldest + 1 : undefined;
}
