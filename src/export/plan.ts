import { addMilliseconds, hoursToMilliseconds } from 'date-fns';
import { addDays, type Day, dayOf, daysBetween, daysIn, lastEndedDay, startOfDay } from '../day.js';
import { type DayRecord, type DayRecords, recentFinalDays } from './day-records.js';
import type { ProjectSettings, Settings } from '../config/schema.js';
import { readLastVerification, readUnfinishedDays } from '../state/days.js';
import type { State } from '../state/state.js';
import { type ExportBounds, type ExportRange, readFirstDay } from './range.js';
import { readPageSize } from './paging.js';

/** Why days are due, in the order in which they are loaded. */
export const DUE_ORDER = ['yesterday', 'provisional', 'failed', 'inconsistent', 'missing', 'reload'] as const;

/** A day to load: why, when, and the fewest requests it is known to need. */
export interface PlannedDay {
  readonly day: Day;
  readonly due: (typeof DUE_ORDER)[number];
  /** No project goes on to its past before all have their latest days. */
  readonly stage: 'latest' | 'past';
  readonly requests: number;
}

/** Days to load, in the order in which to load them, and how many of the range need nothing, or nothing today. */
export interface ExportPlan {
  readonly range: ExportRange;
  /** Days that were never requested. */
  readonly missing: readonly Day[];
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

/** After so many nights in which a day did not add up, a person has to look at it, and it is rarely read. */
const NIGHTS_IN_DOUBT = 3;

/** Whether a day has not added up for so long that a person has to look. */
export const needsPerson = ({ state, failures }: DayRecord): boolean =>
  state === 'inconsistent' && failures >= NIGHTS_IN_DOUBT;

/**
 * When a day is tried again. One that did not add up: the next night, or after the third, a week
 * later, or after a quarter of its age if that is longer, because many such days would take many requests. One that failed: after a first failure with the next export, then after an hour, and
 * four times as long after each further one. The interval is never longer than a quarter of the age
 * of the day, so that recent days, which people wait for, are tried several times a day.
 */
export function retryAt(record: DayRecord): Date {
  const { day, attempted_at: attemptedAt, failures, state } = record;
  if (state === 'inconsistent') {
    const rarely = Math.max(7, Math.floor(daysBetween(day, dayOf(attemptedAt)) / 4));
    return startOfDay(addDays(dayOf(attemptedAt), needsPerson(record) ? rarely : 1));
  }
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

/** The fewest requests for a day of so many rows, of which the platform returns so many at once. */
export const requestsFor = (rows: number, pageSize: number): number =>
  Math.max(1, Math.ceil(rows / pageSize));

/** The requests of a day of which some rows are kept. */
const requestsLeft = (requests: number, kept = 0, pageSize: number): number =>
  Math.max(1, requests - Math.floor(kept / pageSize));

/** The maximum requests of an ordinary night: yesterday, the days still settling, and the check of the past. */
export const nightlyRequests = (rows: number, settleDays: number, pageSize: number): number =>
  (settleDays + 1) * requestsFor(rows, pageSize) + 1;

/** How many rows to expect of a day that was not read yet: those of the next stored day, or else of the last one. */
export function expectedRows(records: DayRecords): (day: Day) => number {
  const stored = [...records.values()].filter((record) => record.pages !== null);
  return (day) => (stored.find((record) => record.day >= day) ?? stored.at(-1))?.pages ?? 0;
}

interface PlanOptions {
  readonly settleDays: number;
  /** How many rows the platform returns at once. */
  readonly pageSize: number;
  /** Whether every day is read whole again, final ones included. */
  readonly reload: boolean;
}

/**
 * The days of `range` that are due: yesterday first, then those that may have changed or failed,
 * then the gaps, each newest first, so that a long backfill never delays the latest days. Days that
 * have already failed today come last: otherwise, a stretch of days that always fail would delay all
 * others.
 *
 * While there are gaps to fill, days that may change are read once a day (UTC): otherwise, a backfill
 * that resumes every few minutes would read them each time.
 */
export function planExport(
  records: DayRecords,
  range: ExportRange,
  now: Date,
  { settleDays, pageSize, reload }: PlanOptions,
): ExportPlan {
  const all = daysIn(range);
  const missing = all.filter((day) => !records.has(day));
  const hasHoles = missing.length > 0;
  const expected = expectedRows(records);
  const days = all
    .flatMap((day) =>
      reload
        ? { day, due: 'reload' as const, stage: 'past' as const }
        : planDay(day, records.get(day), now, hasHoles),
    )
    .map((planned): PlannedDay => {
      // A day that may still change is recognized by its first page.
      const isStart = planned.due === 'provisional' && !isSettled(planned.day, now, settleDays);
      const rows = records.get(planned.day)?.pages ?? expected(planned.day);
      const requests = isStart ? 1 : requestsFor(rows, pageSize);
      return { ...planned, requests };
    })
    .sort(
      (left, right) =>
        Number(failedToday(left)) - Number(failedToday(right)) ||
        DUE_ORDER.indexOf(left.due) - DUE_ORDER.indexOf(right.due) ||
        daysBetween(left.day, right.day),
    );
  const planned = new Set(days.map(({ day }) => day));
  const skipped = all.filter((day) => !planned.has(day));
  const alreadyFinal = skipped.filter((day) => records.get(day)?.state === 'final').length;
  const waiting = skipped.filter((day) => isWaiting(records.get(day), now));
  const readToday = skipped.length - alreadyFinal - waiting.length;
  const requests = days.reduce((sum, planned) => sum + planned.requests, 0);
  return { range, missing, days, alreadyFinal, readToday, waiting, requests };
}

const failedToday = ({ due, stage }: PlannedDay): boolean => due === 'failed' && stage === 'past';

function planDay(
  day: Day,
  record: DayRecord | undefined,
  now: Date,
  hasHoles: boolean,
): Omit<PlannedDay, 'requests'>[] {
  if (record?.state === 'final' || isWaiting(record, now)) return [];
  const wasTriedToday = record !== undefined && dayOf(record.attempted_at) === dayOf(now);
  if (wasTriedToday && hasHoles && record.state !== 'failed') return [];
  const isUnread = day === lastEndedDay(now) && record?.is_stored !== true;
  const due = isUnread ? 'yesterday' : (record?.state ?? 'missing');
  // A day that failed today is tried again after the others.
  const stage = due === 'missing' || wasTriedToday ? 'past' : 'latest';
  return [{ day, due, stage }];
}

/** What an export of a project would do. */
export interface PlannedExport {
  readonly project: ProjectSettings;
  readonly records: DayRecords;
  /** Undefined while the first day is not known. */
  readonly plan: ExportPlan | undefined;
  /** Requests of the plan, and of the nightly check if due. */
  readonly requests: number;
}

/** Plans the export of a project, without a request. */
export function planProject(
  project: ProjectSettings,
  records: DayRecords,
  state: State,
  { history: { start, settleDays } }: Pick<Settings, 'history'>,
  { from, to, reload = false }: ExportBounds,
  now: Date,
): PlannedExport {
  const { id } = project;
  const first = from ?? readFirstDay(state, id, start, now);
  if (first === undefined) return { project, records, plan: undefined, requests: 0 };
  const range = { first, last: to ?? lastEndedDay(now) };
  const { rows: pageSize } = readPageSize(state, id, now);
  const unfinished = readUnfinishedDays(state, id);
  const plan = planExport(records, range, now, { settleDays, pageSize, reload });
  const ofDays = plan.days.map(({ day, requests }) => requestsLeft(requests, unfinished.get(day), pageSize));
  const verifiedAt = readLastVerification(state, id);
  const isChecked = reload || (verifiedAt !== undefined && dayOf(verifiedAt) === dayOf(now));
  const ofCheck = isChecked ? 0 : runsOfNeighbors(recentFinalDays(records, now)).length;
  return { project, records, plan, requests: ofDays.reduce((sum, one) => sum + one, ofCheck) };
}

/** Splits days at their gaps: the totals of a range would count the views of a day that is not stored. */
export function runsOfNeighbors<One extends { readonly day: Day }>(days: readonly One[]): One[][] {
  const runs: One[][] = [];
  for (const one of days) {
    const run = runs.at(-1);
    const previous = run?.at(-1)?.day;
    if (previous !== undefined && addDays(previous, 1) === one.day) run?.push(one);
    else runs.push([one]);
  }
  return runs;
}
