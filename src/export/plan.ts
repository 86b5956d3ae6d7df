import { addMilliseconds, hoursToMilliseconds } from 'date-fns';
import type { Priority } from '../api/retry.js';
import { LIMITS, type ViewCounts } from '../api/schema.js';
import { type Day, dayOf, daysBetween, daysIn, type DayRange, lastEndedDay, startOfDay } from '../day.js';

/** The reliability of a stored day: see `day_loads.state`. A day that was never requested has no state. */
export const DAY_STATES = ['provisional', 'final', 'inconsistent', 'failed'] as const;
export type DayState = (typeof DAY_STATES)[number];

/** A day in the ledger. */
export interface DayRecord extends ViewCounts {
  readonly day: Day;
  readonly state: DayState;
  readonly is_stored: boolean;
  readonly attempted_at: Date;
  readonly pages: number | null;
  /** Attempts in a row that failed or did not add up. */
  readonly failures: number;
}

export type DayLedger = ReadonlyMap<Day, DayRecord>;

/** A day to load: why, how urgently, and the fewest requests it is known to need. */
export interface PlannedDay {
  readonly day: Day;
  readonly due: 'yesterday' | 'missing' | 'reload' | Exclude<DayState, 'final'>;
  readonly priority: Priority;
  readonly requests: number;
  /** Whether it was requested before; true by default. */
  readonly isKnown?: boolean;
}

/** The days that an export covers. */
export interface ExportRange extends DayRange {
  /** Why it does not begin on the day that the user gave. */
  readonly note?: string;
}

/** Days to load, in the order in which to load them, and how many of the range need nothing, or nothing today. */
export interface ExportPlan {
  readonly range: ExportRange;
  readonly days: readonly PlannedDay[];
  readonly alreadyFinal: number;
  readonly readToday: number;
  /** Days that failed or did not add up more than once, and are not due again yet. */
  readonly waiting: readonly Day[];
  readonly requests: number;
}

/** Whether `day` ended at least `settleDays` full days before `now`, so that its numbers no longer change. */
export const isSettled = (day: Day, now: Date, settleDays: number): boolean =>
  daysBetween(day, lastEndedDay(now)) >= settleDays;

/** The longest wait between attempts at a day that keeps failing. */
const LONGEST_RETRY_HOURS = 7 * 24;

/**
 * When a day is tried again: after a first failure with the next export, then after an hour, and
 * four times as long after each further one. The interval is never longer than a quarter of the age
 * of the day, so that recent days, which people wait for, are tried several times a day.
 */
export function retryAt({ day, attempted_at: attemptedAt, failures }: DayRecord): Date {
  if (failures <= 1) return attemptedAt;
  const ageHours = (attemptedAt.getTime() - startOfDay(day).getTime()) / hoursToMilliseconds(1);
  const hours = Math.min(4 ** (failures - 2), LONGEST_RETRY_HOURS, Math.max(1, ageHours / 4));
  return addMilliseconds(attemptedAt, hoursToMilliseconds(hours));
}

/** An attempt dated in the future does not delay a day. */
const isWaiting = (record: DayRecord | undefined, now: Date): boolean =>
  record !== undefined &&
  (record.state === 'failed' || record.state === 'inconsistent') &&
  record.attempted_at <= now &&
  now < retryAt(record);

/** The fewest requests for a day of `pages` pages. */
export const requestsFor = (pages: number): number => Math.max(1, Math.ceil(pages / LIMITS.viewsPage.max));

/** The maximum requests of an ordinary night: yesterday, the days still settling, and the check of the past. */
export const nightlyRequests = (pages: number, settleDays: number): number =>
  (settleDays + 1) * requestsFor(pages) + 1;

/** Pages of the newest stored day: what to expect of a day not read yet. */
export function expectedPages(ledger: DayLedger): number {
  const stored = [...ledger.values()].filter((record) => record.pages !== null);
  const newest = stored.reduce<DayRecord | undefined>(
    (latest, record) => (latest === undefined || record.day > latest.day ? record : latest),
    undefined,
  );
  return newest?.pages ?? 0;
}

/** Why days are due, in the order in which they are loaded. */
export const DUE_ORDER: readonly PlannedDay['due'][] = [
  'yesterday',
  'provisional',
  'failed',
  'inconsistent',
  'missing',
  'reload',
];

/**
 * The days of `range` that are due: yesterday first, then those that may have changed or failed,
 * then the gaps, each newest first, so that a long backfill never delays the latest days. Days that
 * have already failed today come last: otherwise, a stretch of days that always fail would delay
 * all others.
 *
 * While there are gaps to fill, here or in another project with the same limit, days that may
 * change, or whose rows moved while they were read, are read once a day (UTC): otherwise, a backfill
 * that resumes every few minutes would use up its budget on them.
 */
export function planExport(
  ledger: DayLedger,
  range: ExportRange,
  now: Date,
  isBackfilling = false,
): ExportPlan {
  const pages = expectedPages(ledger);
  const yesterday = lastEndedDay(now);
  const all = daysIn(range);
  const hasHoles = isBackfilling || all.some((day) => !ledger.has(day));
  const days = all
    .flatMap((day) => planDay(day, ledger.get(day), { now, yesterday, hasHoles, expected: pages }))
    .sort(
      (left, right) =>
        Number(failedToday(left)) - Number(failedToday(right)) ||
        DUE_ORDER.indexOf(left.due) - DUE_ORDER.indexOf(right.due) ||
        daysBetween(left.day, right.day),
    );
  const alreadyFinal = all.filter((day) => ledger.get(day)?.state === 'final').length;
  const waiting = all.filter((day) => isWaiting(ledger.get(day), now));
  const readToday = all.length - days.length - alreadyFinal - waiting.length;
  const requests = days.reduce((sum, day) => sum + day.requests, 0);
  return { range, days, alreadyFinal, readToday, waiting, requests };
}

/** Every day of `range`, final ones included, to be read whole again, newest first. */
export function planReload(ledger: DayLedger, range: ExportRange): ExportPlan {
  const expected = expectedPages(ledger);
  const days = daysIn(range)
    .reverse()
    .map((day): PlannedDay => {
      const requests = requestsFor(ledger.get(day)?.pages ?? expected);
      return { day, due: 'reload', priority: 'backfill', requests };
    });
  const requests = days.reduce((sum, day) => sum + day.requests, 0);
  return { range, days, alreadyFinal: 0, readToday: 0, waiting: [], requests };
}

const failedToday = ({ due, priority }: PlannedDay): boolean => due === 'failed' && priority === 'backfill';

function planDay(
  day: Day,
  record: DayRecord | undefined,
  { now, yesterday, hasHoles, expected }: { now: Date; yesterday: Day; hasHoles: boolean; expected: number },
): PlannedDay[] {
  const wasTriedToday = record !== undefined && dayOf(record.attempted_at) === dayOf(now);
  if (record?.state === 'final' || isWaiting(record, now)) return [];
  if (wasTriedToday && hasHoles && record.state !== 'failed') return [];
  const due = day === yesterday && record?.is_stored !== true ? 'yesterday' : (record?.state ?? 'missing');
  // A day that failed today is tried again, but not with the requests reserved for the others.
  const priority = due === 'missing' || wasTriedToday ? 'backfill' : 'urgent';
  // A provisional day that did not change is recognized by its first page.
  const requests = due === 'provisional' ? 1 : requestsFor(record?.pages ?? expected);
  return [{ day, due, priority, requests, isKnown: record !== undefined }];
}
