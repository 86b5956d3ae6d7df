import { z } from 'zod';
import { addDays, type Day, type DayRange, day, daysBetween, lastEndedDay } from '../day.js';
import { longDay, plainDayRange } from '../format/days.js';
import { BELIEVED_DAYS, type PlatformFact, readFact, recordFact } from '../state/facts.js';
import {
  equalCounts,
  largest,
  largestConfirmed,
  NO_VIEWS,
  probeTotals,
  sumCounts,
  totalsIfAnswered,
  viewsIn,
} from './totals.js';
import { ConfigurationError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { readDayRecords } from './day-records.js';
import { KEPT_FROM } from './retention.js';
import { storeEmptyDays } from './store-day.js';
import type { ExportedProject } from './failures.js';
import type { State } from '../state/state.js';

const fact = <Value>(name: string, value: z.ZodType<Value>): PlatformFact<Value> => ({
  name,
  value,
  isLimit: false,
});

const dayValue = z.string().transform(day);
const searchValue = z.object({
  /** The last day of the ranges that it asks for, and the most days of a range. */
  last: dayValue,
  length: z.int(),
  /** Ages in days, and the views of the range that ends then; null if it was refused. */
  views: z.array(z.tuple([z.int(), z.int().nullable()])),
});
/** How far the search for the first day has got. */
type Search = z.infer<typeof searchValue>;

/** The first day with a view. If it was not confirmed for a time, the days before it are checked again. */
export const FIRST_DAY = fact('first day', dayValue);
export const SEARCH = fact('search', searchValue);

/** The first day to load, configured or found, of those that the platform keeps; undefined while it is unknown. */
export function readFirstDay(state: State, project: string, start: Day | 'auto', now: Date): Day | undefined {
  const first = start === 'auto' ? readFact(state, project, FIRST_DAY, now) : start;
  const keptFrom = readFact(state, project, KEPT_FROM, now);
  return first !== undefined && keptFrom !== undefined && keptFrom > first ? keptFrom : first;
}

/** A remembered first day that is checked has no views in so many days before it. */
const DAYS_BEFORE = 30;

/** Fewer days than this are loaded without first checking whether there are any views. */
const FEW_DAYS = 14;

/** What the user wants: bounds, both included, and whether to read every day between them again, and nothing else. */
export interface ExportBounds {
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly reload?: boolean | undefined;
}

/** The days that an export covers. */
export interface ExportRange extends DayRange {
  /** Why it does not begin on another day. */
  readonly note?: string;
  /** Finds the whole range, while only its latest days are known. */
  readonly rest?: () => Promise<ExportRange>;
}

export interface RangeRequest extends FirstDayRequest, Pick<ExportBounds, 'from' | 'to'> {
  /** The start of the history: a day, or `auto` to find it on the platform and remember it. */
  readonly start: Day | 'auto';
}

/**
 * The days that an export covers: never today, which has not ended, and none that the platform no
 * longer keeps. With `auto`, none from before the first view. While that day is not known, the range is
 * only the last day, from which the export learns how to read the others; `rest` searches for all of
 * it. Undefined if the platform has no views yet.
 */
export async function resolveRange(request: RangeRequest): Promise<ExportRange | undefined> {
  const { state, project, start, from, to, now } = request;
  const yesterday = lastEndedDay(now);
  const last = to !== undefined && to < yesterday ? to : yesterday;
  if (from !== undefined) return start === 'auto' ? rangeFrom(request, from, last) : { first: from, last };
  if (start === 'auto') await checkStart(request);
  const first = readFirstDay(state, project, start, now);
  if (first !== undefined) return { first, last };
  const search = await beginSearch(request, yesterday);
  if (search === undefined) return undefined;
  // Recorded now, because the search would start over after each pause.
  await recordFact(state, project, SEARCH, search, now);
  const rest = () => finishSearch(request, search, last);
  return last < yesterday ? rest() : { first: last, last, rest };
}

/** Resolves the first day that the user gave, with at most one request. */
async function rangeFrom(request: RangeRequest, from: Day, last: Day): Promise<ExportRange | undefined> {
  const asGiven = { first: from, last };
  const { state, client, project, now, signal } = request;
  const known = readFact(state, project, FIRST_DAY, now);
  const isSure = known === undefined ? daysBetween(from, last) < FEW_DAYS : from >= known;
  if (isSure) return asGiven;
  const unknown = { first: from, last: known === undefined || known > last ? last : addDays(known, -1) };
  const views = await viewsIn(client, unknown, { signal });
  if (known === undefined) return views === 'none' ? undefined : asGiven;
  if (views !== 'some') {
    const why = views === 'refused' ? 'refuses' : 'has no views of';
    return { first: known, last, note: `the platform ${why} ${plainDayRange(unknown)}` };
  }
  await recordFact(state, project, FIRST_DAY, undefined, now);
  return asGiven;
}

/** Forgets the remembered first day if there are now views before it, so that it is found again. */
async function checkStart(request: RangeRequest): Promise<void> {
  const { state, client, project, now, signal } = request;
  const known = readFact(state, project, FIRST_DAY, now);
  const recent = readFact(state, project, { ...FIRST_DAY, isLimit: true }, now);
  if (known === undefined || recent !== undefined) return;
  const before = { first: addDays(known, -DAYS_BEFORE), last: addDays(known, -1) };
  const views = await viewsIn(client, before, { signal });
  await recordFact(state, project, FIRST_DAY, views === 'some' ? undefined : known, now);
}

/** No server of the API has data from before this day. */
export const EARLIEST_DAY = day('2015-01-01');

/** A stretch of at least so many empty days after the first one shows that the first one is a stray. */
const STRAY_DAYS = 30;

/** Lengths of ranges, in days, that are tried on a server that refuses longer ones. */
const SHORTER_RANGES = [366, 31, 1];

/** A project whose first day is searched for. */
interface FirstDayRequest extends Omit<ExportedProject, 'now'> {
  readonly signal?: AbortSignal | undefined;
  readonly now: Date;
}

/** The requests of a history since the earliest day, if each day has up to 250 pages. */
export const requestsSince2015 = (last: Day): number => daysBetween(EARLIEST_DAY, last) + 1;

/** The most requests for the first day on a server that answers for every range. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + 2 * Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/**
 * Begins the search for the first day with a view up to `last`, or continues the one that an earlier
 * export began. Undefined when there is no view. On a server that refuses long ranges, it looks for
 * the longest that is answered. Throws what the client throws if not even one day is.
 */
async function beginSearch(request: FirstDayRequest, last: Day): Promise<Search | undefined> {
  const { client, state, project, signal, now } = request;
  const begun = readFact(state, project, SEARCH, now);
  if (begun !== undefined) return begun;
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  for (const length of [longest, ...SHORTER_RANGES.filter((shorter) => shorter < longest)]) {
    const read = length === 1 ? probeTotals : totalsIfAnswered;
    const totals = await read(client, { first: addDays(last, 1 - length), last }, { signal });
    if (totals === undefined) continue;
    if (!equalCounts(totals, NO_VIEWS)) return { last, length, views: [[0, totals.total]] };
    if (length === longest) break;
    throw new ConfigurationError(
      `Could not find the first day of the history: the platform refuses ranges of more than ${counted(length, 'day')}, ` +
        'and the latest have no views. Set history.start in readership.yaml to the first day to load.',
    );
  }
  return undefined;
}

/** Searches on from where it stopped, with every answer recorded, so that it goes on after any pause. */
async function finishSearch(
  request: FirstDayRequest,
  { last, length, views }: Search,
  lastDay: Day,
): Promise<ExportRange> {
  const { client, history, state, project, signal, now } = request;
  const answers = new Map(views);
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  const viewsUpTo = async (age: number): Promise<number> => {
    if (!answers.has(age)) {
      const range = { first: addDays(last, 1 - Math.min(age + length, longest)), last: addDays(last, -age) };
      const totals = await totalsIfAnswered(client, range, { signal });
      // Views may be counted by kind only.
      answers.set(age, totals === undefined ? null : Math.max(totals.total, totals.human + totals.ai));
      await recordFact(state, project, SEARCH, { last, length, views: [...answers] }, now);
    }
    return answers.get(age) ?? 0;
  };
  const holds = async (age: number) => (await viewsUpTo(age)) > 0;
  const stored = [...(await readDayRecords({ history, state }, project)).values()].filter(
    (record) => record.is_stored,
  );
  // If all days have as many views as those stored, this is the age of the first one.
  const guess =
    stored.length === 0
      ? longest
      : Math.ceil(((await viewsUpTo(0)) * stored.length) / sumCounts(stored).total);
  // Only a refusal is tried again: other answers are facts.
  const again = async (age: number) => answers.get(age) === null && answers.delete(age) && (await holds(age));
  const oldest = await largestConfirmed(holds, length < longest ? length : guess, longest - 1, again);
  const isRefused = answers.get(oldest + 1) === null;
  // If older ranges are refused, the history begins with the oldest range that is returned.
  const first = addDays(last, isRefused ? 1 - oldest - length : -oldest);
  const newest = length < longest ? oldest : await endOfStray([...answers], oldest, viewsUpTo);
  const empty = { first: addDays(last, 1 - oldest), last: addDays(last, -newest) };
  if (newest < oldest) await storeEmptyDays({ history, state }, project, empty, now);
  if (isRefused) await recordFact(state, project, KEPT_FROM, first, now);
  await recordFact(state, project, FIRST_DAY, first, now);
  await recordFact(state, project, SEARCH, undefined, now);
  return { first, last: lastDay, ...(isRefused ? { note: keptNote(first) } : {}) };
}

/** That a platform keeps no days before the first one. */
export const keptNote = (first: Day): string =>
  `the platform refuses days before ${longDay(first)}, so the history begins there; they are tried again after ${BELIEVED_DAYS} days`;

/** The age at which a long stretch without views ends that follows the first day; that of the first day if there is none. */
async function endOfStray(
  answers: readonly (readonly [number, number | null])[],
  oldest: number,
  viewsUpTo: (age: number) => Promise<number>,
): Promise<number> {
  const ofFirst = await viewsUpTo(oldest);
  const known = answers.filter(([age]) => age <= oldest);
  const newest = Math.min(...known.filter(([, views]) => views === ofFirst).map(([age]) => age));
  if (oldest - newest < STRAY_DAYS) return oldest;
  const most = newest - Math.max(...known.filter(([, views]) => views !== ofFirst).map(([age]) => age)) - 1;
  const isStray = async (days: number) => (await viewsUpTo(newest - days)) === ofFirst;
  return newest - (await largest(isStray, Math.ceil(most / 2), most));
}
