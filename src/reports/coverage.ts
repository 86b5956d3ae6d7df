import { z } from 'zod';
import type { DayRange } from '../day.js';
import { dayList, dayRange, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import type { Reader } from '../history/duckdb.js';
import { ConfigurationError } from '../errors.js';
import type { Period } from './period.js';

const COVERAGE = readSql(import.meta.url, 'statements/coverage.sql');

const coverageRow = z.object({
  days: z.int(),
  daysLoaded: z.int(),
  /** Days within the history that are not loaded. */
  missing: z.array(dayColumn),
  /** Days that are loaded, but whose views have not arrived yet. */
  awaited: z.array(dayColumn),
  /** Days before the history starts, which will never be loaded. */
  before: z.array(dayColumn),
  provisional: z.array(dayColumn),
  /** Days that were loaded, but whose rows moved during the walk, or whose later load failed. */
  doubtful: z.array(dayColumn),
  latestLoad: timestampColumn,
  historySince: dayColumn,
  /** Whether the platform has older days, which are not loaded yet. */
  hasOlder: z.boolean(),
  /** Since when every day before the period is loaded, if the platform has older ones that are not. */
  loadedSince: dayColumn.nullable(),
});
/** How much of a period is loaded, and how reliable its numbers are. */
export type Coverage = z.infer<typeof coverageRow>;

const HISTORY =
  'SELECT min(day) AS first, max(day) AS last FROM site_days WHERE project = $project HAVING count(*) > 0';
const historyRow = z.object({ first: dayColumn, last: dayColumn });

/** The first and the last loaded day of a project; undefined for none. */
export async function extentOf(reader: Reader, project: string): Promise<DayRange | undefined> {
  const [extent] = await reader.query(HISTORY, historyRow, { project });
  return extent;
}

/** No day of a report's period is loaded: the wrong period, or a site too young for it. */
export class NothingLoadedError extends ConfigurationError {
  constructor(
    message: string,
    /** The days of the project that are loaded; null for none. */
    readonly history: DayRange | null = null,
  ) {
    super(message);
  }
}

/**
 * Works on one item after another. Returns the results, and the items with nothing loaded, such as a project before its launch. Throws the first of these if it is true of all items.
 */
export async function eachLoaded<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<{ results: Result[]; empty: { item: Item; error: NothingLoadedError }[] }> {
  const results: Result[] = [];
  const empty: { item: Item; error: NothingLoadedError }[] = [];
  for (const item of items)
    try {
      results.push(await work(item));
    } catch (error) {
      if (!(error instanceof NothingLoadedError)) throw error;
      empty.push({ item, error });
    }
  const [first] = empty;
  if (first !== undefined && results.length === 0) throw first.error;
  return { results, empty };
}

/** The coverage of a period. Throws a `NothingLoadedError` if none of its days is loaded. */
export async function readCoverage(
  reader: Reader,
  project: { readonly id: string; readonly name: string },
  period: Period,
): Promise<Coverage> {
  const { first: from, last: to } = period;
  const [coverage] = await reader.query(COVERAGE, coverageRow, { project: project.id, from, to });
  if (coverage !== undefined) return coverage;
  const history = await extentOf(reader, project.id);
  throw new NothingLoadedError(
    `Nothing is loaded for ${period.name} (${dayRange(period)}) of ${project.name}. Its history ` +
      (history === undefined
        ? `is empty: load it with readership export --project ${project.id}.`
        : `covers ${plainDayRange(history)}.`),
    history,
  );
}

/** Caveats about the numbers; empty for a period that is complete and final. */
export function cautionsOf(coverage: Coverage): string[] {
  const { missing, awaited, before, days, daysLoaded, provisional, doubtful, historySince, hasOlder } =
    coverage;
  const since = dayList([historySince]);
  const gaps = [
    before.length > 0 && (hasOlder ? `Loaded from ${since} so far` : `The history starts on ${since}`),
    missing.length > 0 && `${dayList(missing)} ${missing.length === 1 ? 'is' : 'are'} not loaded`,
    awaited.length > 0 && `The views of ${dayList(awaited)} have not arrived yet`,
  ].filter((gap) => gap !== false);
  const covers = `: all numbers cover ${counted(daysLoaded, 'loaded day')} of ${days} and are not compared with others`;
  return [
    ...gaps.map((gap, index) => `${gap}${index === 0 ? covers : ''}.`),
    provisional.length > 0 && `The views of ${dayList(provisional)} may still change.`,
    doubtful.length > 0 && `${dayList(doubtful)} did not load cleanly and will be loaded again.`,
  ].filter((caution) => caution !== false);
}
