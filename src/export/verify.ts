import { z } from 'zod';
import type { Priority } from '../api/retry.js';
import { addDays, type Day, dayOf, lastEndedDay, rangeOf } from '../day.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { ApiError, PausedError } from '../api/errors.js';
import { LOOKED_AT, NOT_ADDITIVE, readFact, readPageSize, recordFact } from './facts.js';
import { readDayLedger, readStoredDay, recordFailedDay } from './ledger.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import { type DayLedger, type PlannedDay, requestsFor } from './plan.js';
import {
  AdditivityError,
  type DifferingDay,
  equalCounts,
  expectAdditive,
  findDifferingDays,
  isForgotten,
  NO_VIEWS,
  probeTotals,
  type StoredTotals,
} from './totals.js';
import { isPartOf } from './walk.js';

const LAST_VERIFICATION = readSql(import.meta.url, 'statements/last-verification.sql');
const RECORD_VERIFICATION = readSql(import.meta.url, 'statements/record-verification.sql');
const DAMAGED_DAYS = readSql(import.meta.url, 'statements/damaged-days.sql');

/** Why a day that differs is listed as failed. */
const DIFFERS = 'its numbers on the platform have changed; it will be loaded again next time';

/** How far back the nightly check looks. Older days are checked only by `audit`. */
const RECENT_DAYS = 35;

/** What a check of stored days found, and what it loaded again, or what stopped it. */
export interface Check {
  readonly days: number;
  readonly differing: readonly DifferingDay[];
  /** Days that the platform no longer has; their stored data is kept. */
  readonly forgotten: readonly DifferingDay[];
  readonly repaired: LoadOutcome;
}

/** When the stored history was last compared with the platform. */
export async function readLastVerification(reader: Reader, project: string): Promise<Date | undefined> {
  const row = z.object({ verified_at: timestampColumn });
  const [last] = await reader.query(LAST_VERIFICATION, row, { project });
  return last?.verified_at;
}

/** Final days, oldest first: only those are expected not to change. */
const settledTotals = (ledger: DayLedger): StoredTotals[] =>
  [...ledger.values()].filter(({ state }) => state === 'final');

/** The days that the nightly check looks at, oldest first: not those that were read today. */
export function recentTotals(ledger: DayLedger, now: Date): StoredTotals[] {
  const last = lastEndedDay(now);
  const since = addDays(last, -RECENT_DAYS);
  return notReadToday(settledTotals(ledger), ledger, now).filter(({ day }) => day >= since && day <= last);
}

const notReadToday = (days: readonly StoredTotals[], ledger: DayLedger, now: Date): StoredTotals[] =>
  days.filter(({ day }) => dayOf(ledger.get(day)?.attempted_at ?? now) !== dayOf(now));

/** Compares the recent final days with the platform, and loads again those that differ. */
export async function checkRecentDays(task: LoadTask): Promise<Check> {
  const { warehouse, client, project, now, signal } = task;
  const ledger = await readDayLedger(warehouse, project);
  const recent = recentTotals(ledger, now());
  const differing: DifferingDay[] = [];
  const forgotten: DifferingDay[] = [];
  const refused: StoredTotals[] = [];
  try {
    for await (const day of listDifferingDays(task, recent, 'urgent', refused))
      (isForgotten(day) ? forgotten : differing).push(day);
    await expectSomeAnswer(task, recent, refused);
  } catch (stopped) {
    return { days: recent.length, differing, forgotten, repaired: { results: [], stopped } };
  }
  const compared = without(recent, refused);
  const check = { days: compared.length, differing, forgotten };
  const days = differing.map(({ day }) => day);
  const repaired = await loadDays(task, planAgain(ledger, days, 'urgent'));
  if (repaired.stopped !== undefined) return { ...check, repaired };
  // Days that differ in a sum and are the same when they are read show that the sums cannot be trusted.
  const [suspect] = days;
  if (suspect !== undefined && repaired.results.every(({ outcome }) => outcome === 'unchanged'))
    try {
      await expectAdditive(client, addDays(suspect, -1), { signal });
      await expectAdditive(client, suspect, { signal });
    } catch (stopped) {
      if (stopped instanceof AdditivityError)
        await recordFact(warehouse, project, NOT_ADDITIVE, addDays(suspect, -1), now());
      return { ...check, repaired: { ...repaired, stopped } };
    }
  await recordVerification(task, compared, differing.length + forgotten.length);
  return { ...check, repaired };
}

/** If the platform refuses every range, a request for one day shows whether it refuses the key. */
async function expectSomeAnswer(
  { client, signal }: LoadTask,
  stored: readonly StoredTotals[],
  refused: readonly StoredTotals[],
): Promise<void> {
  const newest = stored.at(-1)?.day;
  if (newest !== undefined && refused.length === stored.length)
    await probeTotals(client, { first: newest, last: newest }, { signal });
}

/**
 * Looks at final days again, a few each night and each day in its turn, because sums do not show views that moved to the
 * next day, or from page to page. Those whose totals or first page differ are loaded again.
 */
export async function lookAgain(task: LoadTask, requests: number): Promise<LoadOutcome> {
  const { warehouse, client, project, now, signal } = task;
  const ledger = await readDayLedger(warehouse, project);
  const days = notReadToday(settledTotals(ledger), ledger, now());
  const lookedAt = await readFact(warehouse, project, LOOKED_AT, now());
  const next = days.findIndex(({ day }) => lookedAt === undefined || day > lookedAt);
  const inTurn = [...days.slice(Math.max(0, next)), ...days.slice(0, Math.max(0, next))].slice(0, requests);
  const { rows: limit } = await readPageSize(warehouse, project, now());
  const differing: Day[] = [];
  try {
    for (const { day } of inTurn) {
      const stored = await readStoredDay(warehouse, { project, day });
      const query = { dateFrom: day, dateTo: addDays(day, 1), limit, offset: 0 };
      const page = await client.views(query, { signal, priority: 'backfill' });
      const isSame =
        stored !== undefined && equalCounts(stored.totals, page.totals) && isPartOf(stored, page);
      if (!isSame && !isForgotten({ day, stored: stored?.totals ?? NO_VIEWS, platform: page.totals })) {
        await recordFailedDay(warehouse, { project, day, now: now() }, DIFFERS);
        differing.push(day);
      }
      await recordFact(warehouse, project, LOOKED_AT, day, now());
    }
  } catch (error) {
    // Spare requests are no reason to fail: a day that is refused keeps its place in the rotation.
    if (!(error instanceof PausedError || error instanceof ApiError)) throw error;
  }
  return loadDays(task, planAgain(ledger, differing, 'backfill'));
}

/**
 * Finds stored days that differ, as `findDifferingDays` does, and marks each as failed at once. If the budget stops the
 * check, the next export loads these days first, and then checks the rest. Days that the platform forgot are kept.
 */
async function* listDifferingDays(
  { warehouse, client, project, now, signal }: LoadTask,
  stored: readonly StoredTotals[],
  priority: Priority,
  refused: StoredTotals[],
): AsyncGenerator<DifferingDay> {
  for await (const found of findDifferingDays(client, stored, { signal, priority }, refused)) {
    const at = { project, day: found.day, now: now() };
    if (!isForgotten(found)) await recordFailedDay(warehouse, at, DIFFERS);
    yield found;
  }
}

const without = (days: readonly StoredTotals[], refused: readonly StoredTotals[]): StoredTotals[] => {
  const left = new Set(refused);
  return days.filter((day) => !left.has(day));
};

/** Days to be read completely once more, regardless of their state. */
const planAgain = (ledger: DayLedger, days: readonly Day[], priority: Priority): PlannedDay[] =>
  days.map((day) => ({
    day,
    due: 'failed',
    priority,
    requests: requestsFor(ledger.get(day)?.pages ?? 0),
  }));

/** Stored days whose rows no longer add up to their ledger: damage that is found without a request. */
export async function findDamagedDays(reader: Reader, project: string): Promise<Day[]> {
  const rows = await reader.query(DAMAGED_DAYS, z.object({ day: dayColumn }), { project });
  return rows.map(({ day }) => day);
}

/** Records that a range of days was compared with the platform. */
async function recordVerification(
  { warehouse, project, now }: LoadTask,
  checked: readonly StoredTotals[],
  differing: number,
): Promise<void> {
  if (checked.length === 0) return;
  const { first, last } = rangeOf(checked.map(({ day }) => day));
  const values = { project, now: now(), first_day: first, last_day: last, days_differing: differing };
  await warehouse.transaction((transaction) => transaction.execute(RECORD_VERIFICATION, values));
}

/** What an audit found in the final days of a project. Only the days in `repaired` were changed. */
export interface Audit {
  readonly days: number;
  /** Days whose totals differ from those of the platform. */
  readonly differing: readonly Day[];
  /** Days that the platform no longer has; their stored data is kept. */
  readonly forgotten: readonly DifferingDay[];
  /** Days whose stored rows do not add up to their ledger. */
  readonly damaged: readonly Day[];
  /** Days that could not be compared, because the platform refuses their range. */
  readonly refused: readonly Day[];
  readonly repaired?: LoadOutcome;
}

/** Compares the whole settled history with the platform. Throws what the client throws; nothing is lost then. */
export async function auditHistory(task: LoadTask, repair: boolean): Promise<Audit> {
  const { warehouse, client, project, signal } = task;
  const ledger = await readDayLedger(warehouse, project);
  const settled = settledTotals(ledger);
  const damaged = await findDamagedDays(warehouse, project);
  const found: DifferingDay[] = [];
  const refused: StoredTotals[] = [];
  for await (const day of repair
    ? listDifferingDays(task, settled, 'backfill', refused)
    : findDifferingDays(client, settled, { signal, priority: 'backfill' }, refused))
    found.push(day);
  await expectSomeAnswer(task, settled, refused);
  const forgotten = found.filter(isForgotten);
  const differing = found.filter((day) => !isForgotten(day)).map(({ day }) => day);
  const compared = without(settled, refused);
  await recordVerification(task, compared, found.length);
  const audit = {
    days: compared.length,
    differing,
    forgotten,
    damaged,
    refused: refused.map(({ day }) => day),
  };
  if (!repair) return audit;
  const kept = new Set(forgotten.map(({ day }) => day));
  const toLoad = [...new Set([...audit.differing, ...damaged])].filter((day) => !kept.has(day)).sort();
  return { ...audit, repaired: await loadDays(task, planAgain(ledger, toLoad, 'backfill')) };
}
