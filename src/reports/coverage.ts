import { z } from 'zod';
import { addDays, type Day, type DayRange } from '../day.js';
import { dayList, dayRange, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { dayColumn, dayStateColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import { ConfigurationError } from '../errors.js';
import type { Calendar, Period } from './period.js';

const PERIOD_DAYS = readSql(import.meta.url, 'statements/period-days.sql');
const HISTORY_EXTENT = readSql(import.meta.url, 'statements/history-extent.sql');

const dayRow = z.object({
  day: dayColumn,
  state: dayStateColumn.nullable(),
  is_restated: z.boolean(),
  human_restated: z.int(),
  ai_restated: z.int(),
});
const extentRow = z.object({
  first_day: dayColumn.nullable(),
  last_day: dayColumn.nullable(),
  latest_load: timestampColumn.nullable(),
  views: z.int(),
  /** Whether the platform has older days, which are not loaded yet. */
  has_older: z.boolean(),
});

/** No day of a report's period is loaded: the wrong period, or a site too young for it. */
export class NothingLoadedError extends ConfigurationError {}

/**
 * Works on one item after another. Returns the results, and the errors of the items with nothing
 * loaded, such as a project before its launch. Throws the first of these if it is true of all items.
 */
export async function eachLoaded<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<{ results: Result[]; empty: NothingLoadedError[] }> {
  const results: Result[] = [];
  const empty: NothingLoadedError[] = [];
  for (const item of items)
    try {
      results.push(await work(item));
    } catch (error) {
      if (!(error instanceof NothingLoadedError)) throw error;
      empty.push(error);
    }
  const [first] = empty;
  if (first !== undefined && results.length === 0) throw first;
  return { results, empty };
}

/** How much of a period is loaded, and how reliable its numbers are. */
export type Coverage = Awaited<ReturnType<typeof readCoverage>>;

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
) {
  const daysFrom = (from: Day, to: Day) =>
    reader.query(PERIOD_DAYS, dayRow, { project: project.id, from, to });
  const { first: from, last: to } = period;
  const days = await daysFrom(from, to);
  const daysBefore = await daysFrom(addDays(from, -days.length), addDays(from, -1));
  const [extent] = await reader.query(HISTORY_EXTENT, extentRow, { project: project.id, from, to });
  const loaded = days.filter(({ state }) => state !== null);
  const since = extent?.first_day ?? null;
  if (extent === undefined || since === null || loaded.length === 0)
    throw nothingLoaded(project.name, period, since && { first: since, last: extent?.last_day ?? since });
  const changed = days.filter((day) => day.is_restated);
  const [human, ai] = [sum(changed, 'human_restated'), sum(changed, 'ai_restated')];
  const viewsBefore = extent.views - human - ai;
  const daysWhere = (fits: (row: (typeof days)[number]) => boolean): Day[] =>
    days.filter(fits).map(({ day }) => day);
  return {
    days: days.length,
    daysLoaded: loaded.length,
    /** Days within the history that are not loaded. */
    missing: daysWhere(({ state, day }) => state === null && day > since),
    /** Days before the history starts, which will never be loaded. */
    before: daysWhere(({ state, day }) => state === null && day < since),
    provisional: daysWhere(({ state }) => state === 'provisional'),
    /** Days that were loaded, but whose rows moved during the walk, or whose later load failed. */
    doubtful: daysWhere(({ state }) => state === 'inconsistent' || state === 'failed'),
    latestLoad: extent.latest_load,
    historySince: since,
    hasOlder: extent.has_older,
    /** Days that a later load changed: by how many views, and by what share of the earlier count. */
    restated: {
      days: changed.length,
      human,
      ai,
      ratio: viewsBefore > 0 ? (human + ai) / viewsBefore : null,
    },
    /** By how many views later loads changed the same number of days before the period. */
    restatedBefore: { human: sum(daysBefore, 'human_restated'), ai: sum(daysBefore, 'ai_restated') },
  };
}

const sum = (rows: readonly z.infer<typeof dayRow>[], column: 'human_restated' | 'ai_restated'): number =>
  rows.reduce((total, row) => total + row[column], 0);

/** Caveats about the numbers; empty for a period that is complete and final. */
export function cautionsOf(coverage: Coverage): string[] {
  const { missing, before, days, daysLoaded, provisional, doubtful, historySince, hasOlder } = coverage;
  const cautions: string[] = [];
  const covers = `all numbers cover ${counted(daysLoaded, 'loaded day')} of ${days} and are not compared with others`;
  const start = hasOlder ? 'Loaded from' : 'The history starts on';
  const sofar = hasOlder ? ' so far' : '';
  if (before.length > 0) cautions.push(`${start} ${dayList([historySince])}${sofar}: ${covers}.`);
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
