import { z } from 'zod';
import { addDays, type Day, type DayRange } from '../day.js';
import { DAY_STATES } from '../export/plan.js';
import { dayList, dayRange, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { NothingLoadedError } from './errors.js';
import type { Calendar, Period } from './period.js';

const PERIOD_DAYS = readSql(import.meta.url, 'statements/period-days.sql');
const HISTORY_EXTENT = readSql(import.meta.url, 'statements/history-extent.sql');

const dayRow = z.object({
  day: dayColumn,
  state: z.enum(DAY_STATES).nullable(),
  is_restated: z.boolean(),
  human_restated: z.int(),
  ai_restated: z.int(),
});
const extentRow = z.object({
  first_day: dayColumn.nullable(),
  last_day: dayColumn.nullable(),
  latest_load: timestampColumn.nullable(),
  views: z.int(),
});

/** How much of a period is loaded, and how reliable its numbers are. */
export interface Coverage {
  readonly days: number;
  readonly daysLoaded: number;
  /** Days within the history that are not loaded. */
  readonly missing: readonly Day[];
  /** Days before the history starts, which will never be loaded. */
  readonly before: readonly Day[];
  readonly provisional: readonly Day[];
  /** Days that were loaded, but whose rows moved during the walk, or whose later load failed. */
  readonly doubtful: readonly Day[];
  readonly latestLoad: Date | null;
  readonly historySince: Day;
  /** Days that a later load changed: by how many views, and by what share of the earlier count. */
  readonly restated: {
    readonly days: number;
    readonly human: number;
    readonly ai: number;
    readonly ratio: number | null;
  };
  /** By how many views later loads changed the same number of days before the period. */
  readonly restatedBefore: { readonly human: number; readonly ai: number };
}

/** What a report's model gets besides the results of its queries. */
export interface ModelContext {
  readonly period: Period;
  readonly calendar: Calendar;
  readonly coverage: Coverage;
}

/** The coverage of a period. Throws a `NothingLoadedError` if none of its days is loaded. */
export async function readCoverage(
  reader: Reader,
  project: { readonly id: string; readonly name: string },
  period: Period,
): Promise<Coverage> {
  const parameters = { project: project.id, from: period.first, to: period.last };
  const days = await reader.query(PERIOD_DAYS, dayRow, parameters);
  const before = { first: addDays(period.first, -days.length), last: addDays(period.first, -1) };
  const daysBefore = await reader.query(PERIOD_DAYS, dayRow, {
    ...{ project: project.id, from: before.first, to: before.last },
  });
  const [extent] = await reader.query(HISTORY_EXTENT, extentRow, parameters);
  const loaded = days.filter(({ state }) => state !== null);
  const since = extent?.first_day ?? null;
  if (extent === undefined || since === null || loaded.length === 0)
    throw nothingLoaded(project.name, period, since && { first: since, last: extent?.last_day ?? since });
  const restated = days.filter((day) => day.is_restated);
  const [human, ai] = [
    sum(restated.map((day) => day.human_restated)),
    sum(restated.map((day) => day.ai_restated)),
  ];
  const viewsBefore = extent.views - human - ai;
  const daysOf = (rows: readonly { readonly day: Day }[]): Day[] => rows.map(({ day }) => day);
  const unloaded = days.filter(({ state }) => state === null);
  return {
    days: days.length,
    daysLoaded: loaded.length,
    missing: daysOf(unloaded.filter(({ day }) => day > since)),
    before: daysOf(unloaded.filter(({ day }) => day < since)),
    provisional: daysOf(days.filter(({ state }) => state === 'provisional')),
    doubtful: daysOf(days.filter(({ state }) => state === 'inconsistent' || state === 'failed')),
    latestLoad: extent.latest_load,
    historySince: since,
    restated: {
      ...{ days: restated.length, human, ai },
      ratio: viewsBefore > 0 ? (human + ai) / viewsBefore : null,
    },
    restatedBefore: {
      human: sum(daysBefore.map((day) => day.human_restated)),
      ai: sum(daysBefore.map((day) => day.ai_restated)),
    },
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** Caveats about the numbers; empty for a period that is complete and final. */
export function cautionsOf({
  missing,
  before,
  days,
  daysLoaded,
  provisional,
  doubtful,
  historySince,
}: Coverage): string[] {
  const cautions: string[] = [];
  const covers = `all numbers cover ${counted(daysLoaded, 'loaded day')} of ${days} and are not compared with others`;
  if (before.length > 0) cautions.push(`The history starts on ${dayList([historySince])}: ${covers}.`);
  if (missing.length > 0)
    cautions.push(
      `${dayList(missing)} ${areDays(missing)} not loaded${before.length > 0 ? '' : `: ${covers}`}.`,
    );
  if (provisional.length > 0)
    cautions.push(`${dayList(provisional)} ${areDays(provisional)} provisional: numbers may still change.`);
  if (doubtful.length > 0)
    cautions.push(`${dayList(doubtful)} did not load cleanly and will be loaded again.`);
  return cautions;
}

const areDays = (days: readonly Day[]): string => (days.length === 1 ? 'is' : 'are');

function nothingLoaded(project: string, period: Period, history: DayRange | null): NothingLoadedError {
  const wanted = `Nothing is loaded for ${period.name} (${dayRange(period)}) of ${project}.`;
  if (history === null)
    return new NothingLoadedError(`${wanted} Its history is empty: load it with readership export.`);
  return new NothingLoadedError(`${wanted} Its history covers ${plainDayRange(history)}.`);
}
