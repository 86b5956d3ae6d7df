import { z } from 'zod';
import type { Priority } from '../api/pace.js';
import { addDays, type Day, lastEndedDay } from '../day.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { readDayLedger } from './ledger.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import { type DayLedger, type PlannedDay, requestsFor } from './plan.js';
import { type DifferingDay, findDifferingDays, isForgotten, type StoredTotals } from './verify.js';

const LAST_VERIFICATION = readSql(import.meta.url, 'statements/last-verification.sql');
const RECORD_VERIFICATION = readSql(import.meta.url, 'statements/record-verification.sql');
const DAMAGED_DAYS = readSql(import.meta.url, 'statements/damaged-days.sql');

/** How far back the nightly check looks. Older days are left to `audit`, which a person reads. */
const RECENT_DAYS = 35;

/** What a check of stored days found, and what it loaded again. */
export interface Check {
  readonly days: number;
  readonly differing: readonly DifferingDay[];
  /** Days of which the platform no longer has anything; what is stored of them stays. */
  readonly forgotten: readonly DifferingDay[];
  readonly repaired: LoadOutcome;
  readonly stopped?: unknown;
}

/** When the stored history was last held against the platform. */
export async function readLastVerification(reader: Reader, project: string): Promise<Date | undefined> {
  const row = z.object({ verified_at: timestampColumn });
  const [last] = await reader.query(LAST_VERIFICATION, row, { project });
  return last?.verified_at;
}

/** Final days, oldest first: only those can be expected to stay as they are. */
export const settledTotals = (ledger: DayLedger): StoredTotals[] =>
  [...ledger.values()].filter(({ state }) => state === 'final');

/** Holds the recent final days against the platform, and loads again those that differ. */
export async function checkRecentDays(task: LoadTask): Promise<Check> {
  const { warehouse, client, project, now, signal } = task;
  const ledger = await readDayLedger(warehouse, project);
  const since = addDays(lastEndedDay(now()), -RECENT_DAYS);
  const recent = settledTotals(ledger).filter(({ day }) => day >= since);
  try {
    const found = await findDifferingDays(client, recent, { signal });
    return await settle(task, ledger, recent, found);
  } catch (stopped) {
    return { days: recent.length, differing: [], forgotten: [], repaired: { results: [] }, stopped };
  }
}

/**
 * Loads again the days that differ, except those that the platform forgot. The check is recorded when that is done: one
 * that the budget stops begins anew, since nothing else would remember which days differ.
 */
async function settle(
  task: LoadTask,
  ledger: DayLedger,
  checked: readonly StoredTotals[],
  found: readonly DifferingDay[],
): Promise<Check> {
  const differing = found.filter((day) => !isForgotten(day));
  const forgotten = found.filter(isForgotten);
  const repaired = await loadDays(
    task,
    planAgain(
      ledger,
      differing.map(({ day }) => day),
      'urgent',
    ),
  );
  const check = { days: checked.length, differing, forgotten, repaired };
  if (repaired.stopped !== undefined) return { ...check, stopped: repaired.stopped };
  await recordVerification(task, checked, found.length);
  return check;
}

/** Days to be read whole once more, whatever their state. */
export const planAgain = (ledger: DayLedger, days: readonly Day[], priority: Priority): PlannedDay[] =>
  days.map((day) => ({
    day,
    due: 'failed',
    priority,
    requests: requestsFor(ledger.get(day)?.pages ?? 0),
  }));

/** Stored days whose rows no longer add up to their ledger: damage that no request is needed to see. */
export async function findDamagedDays(reader: Reader, project: string): Promise<Day[]> {
  const rows = await reader.query(DAMAGED_DAYS, z.object({ day: dayColumn }), { project });
  return rows.map(({ day }) => day);
}

/** Records that a range of days was held against the platform. */
export async function recordVerification(
  { warehouse, project, now }: LoadTask,
  checked: readonly StoredTotals[],
  differing: number,
): Promise<void> {
  const first_day = checked[0]?.day;
  const last_day = checked.at(-1)?.day;
  if (first_day === undefined || last_day === undefined) return;
  const values = { project, now: now(), first_day, last_day, days_differing: differing };
  await warehouse.transaction((transaction) => transaction.execute(RECORD_VERIFICATION, values));
}
