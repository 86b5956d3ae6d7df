import { z } from 'zod';
import { type ViewCounts, viewCountsSchema, type ViewsResponse } from '../api/schema.js';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import { addDays, type Day, dayOf, lastEndedDay } from '../day.js';
import { type DayFailure, readDayFailures } from '../state/day-failures.js';
import type { DayOf } from '../state/kept-pages.js';
import type { State } from '../state/state.js';
import type { Reader } from '../warehouse/query.js';
import { NO_VIEWS } from './totals.js';
import type { StoredViews } from './walk.js';

const DAY_LEDGER = readSql(import.meta.url, 'statements/day-ledger.sql');
const STORED_PAGES = readSql(import.meta.url, 'statements/stored-pages.sql');
const AS_STORED = readSql(import.meta.url, 'statements/as-stored.sql');

/** The reliability of a stored day: see `day_loads.state`. */
const storedStateColumn = z.enum(['provisional', 'final', 'inconsistent']);
export type StoredState = z.infer<typeof storedStateColumn>;
/** Of any day that was ever requested: `failed` if the last attempt was. */
export type DayState = StoredState | 'failed';

const storedDay = viewCountsSchema.extend({
  day: dayColumn,
  state: storedStateColumn,
  attempted_at: timestampColumn,
  pages: z.int(),
  /** Nights in a row in which it did not add up. */
  failures: z.int(),
  /** Why it did not add up. */
  failure: z.string().nullable(),
});
/** A stored day, as of when it was last read. */
export type StoredDay = z.infer<typeof storedDay>;

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
export const dayRun = storedDay.extend({ days: z.int() });
export type DayRun = z.infer<typeof dayRun>;

/**
 * Every stored day of a project, oldest first. With `since`, final days before it that have views, or
 * none, as the one before are left out: only their state is right, and whether they have views.
 */
export const readDayRuns = (reader: Reader, project: string, since: Day | null): Promise<DayRun[]> =>
  reader.query(DAY_LEDGER, dayRun, { project, since, day: null });

/** The record of each day that was ever requested, oldest first. */
export function dayLedger(runs: readonly DayRun[], failures: readonly DayFailure[]): DayLedger {
  const ledger = new Map<Day, DayRecord>();
  for (const run of runs) {
    const record = { ...run, is_stored: true };
    for (let later = 0; later < run.days; later++) ledger.set(addDays(run.day, later), record);
  }
  if (failures.length === 0) return ledger;
  for (const failure of failures) {
    const stored = ledger.get(failure.day) ?? { ...NO_VIEWS, is_stored: false, pages: null };
    ledger.set(failure.day, { ...stored, ...failure, state: 'failed' });
  }
  return new Map([...ledger].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Where stored days and failed attempts are read from. */
export interface LedgerStores {
  readonly reader: Reader;
  readonly state: State;
}

/** What is known of all days, as `readDayRuns` has the stored ones. */
export const readDayLedger = async (
  { reader, state }: LedgerStores,
  project: string,
  since: Day | null = null,
): Promise<DayLedger> =>
  dayLedger(await readDayRuns(reader, project, since), readDayFailures(state, project));

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

/** Whether any day of any project is stored. */
export const hasStoredDays = async (reader: Reader): Promise<boolean> =>
  (await reader.query('SELECT 1 FROM day_loads LIMIT 1', z.object({}))).length > 0;

const pageRow = viewCountsSchema.extend({ path: z.string().transform((path) => path.slice(1)) });

/** A day as it is stored, with its pages; undefined if it is not. */
export async function readDay(
  reader: Reader,
  { project, day }: DayOf,
): Promise<{ readonly record: StoredDay; readonly views: StoredViews } | undefined> {
  const [record] = await reader.query(DAY_LEDGER, storedDay, { project, day, since: null });
  if (record === undefined) return undefined;
  const rows = await reader.query(STORED_PAGES, pageRow, { project, day });
  return { record, views: { totals: record, rows } };
}

/** Whether the platform's first page of a day, with its totals, is stored. The API promises no order, so any rows will do. */
export async function isAsStored(reader: Reader, at: DayOf, first: ViewsResponse): Promise<boolean> {
  const values = { ...at, ...first.totals, rows: JSON.stringify(first.views), has_more: first.hasMore };
  return (await reader.query(AS_STORED, z.object({ day: dayColumn }), values)).length > 0;
}
