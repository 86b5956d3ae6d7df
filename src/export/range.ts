import { z } from 'zod';
import { addDays, type Day, type DayRange, day, daysBetween, lastEndedDay } from '../day.js';
import { longDay, plainDayRange } from '../format/days.js';
import { BELIEVED_DAYS, type PlatformFact, readFact, recordFact } from '../state/platform.js';
import { equalCounts, NO_VIEWS } from './totals.js';
import { largestConfirmed, probeTotals, totalsIfAnswered, viewsIn } from './probe.js';
import { ConfigurationError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { KEPT_FROM } from './retention.js';
import type { ExportedProject } from './failures.js';
import type { State } from '../state/state.js';

const dayValue = z.string().transform(day);

/** The first day with a view. If it was not confirmed for a time, the days before it are checked again. */
export const FIRST_DAY: PlatformFact<Day> = { name: 'first day', value: dayValue, isLimit: false };

const searchValue = z.object({
  /** The last day of the ranges that it requests, and the most days of a range. */
  last: dayValue,
  length: z.int(),
  /** What the platform answered for ranges, by the ages of their last days. */
  answers: z.array(z.tuple([z.int(), z.enum(['some', 'none', 'refused'])])),
});
type Search = z.infer<typeof searchValue>;

/** How far the search for the first day has got, so that it goes on after any pause. */
const SEARCH: PlatformFact<Search> = { name: 'search', value: searchValue, isLimit: false };

/** The first day to load, configured or found, of those that the platform keeps; undefined while it is unknown. */
export function readFirstDay(state: State, project: string, start: Day | 'auto', now: Date): Day | undefined {
  const first = start === 'auto' ? readFact(state, project, FIRST_DAY, now) : start;
  const keptFrom = readFact(state, project, KEPT_FROM, now);
  return first !== undefined && keptFrom !== undefined && keptFrom > first ? keptFrom : first;
}

/** A remembered first day that is checked has no views in so many days before it. */
const DAYS_BEFORE = 30;

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
}

export interface RangeRequest extends Omit<ExportedProject, 'history'>, ExportBounds {
  /** The start of the history: a day, or `auto` to find it on the platform and remember it. */
  readonly start: Day | 'auto';
}

/**
 * The days that an export covers: never today, which has not ended, and none that the platform no
 * longer keeps. With `auto`, none from before the first view. Undefined if the platform has no views yet.
 */
export async function resolveRange(request: RangeRequest): Promise<ExportRange | undefined> {
  const { state, project, start, from, to } = request;
  const now = request.now();
  const yesterday = lastEndedDay(now);
  const last = to !== undefined && to < yesterday ? to : yesterday;
  if (from !== undefined) return start === 'auto' ? rangeFrom(request, from, last) : { first: from, last };
  if (start === 'auto') await checkStart(request);
  const first = readFirstDay(state, project, start, now);
  if (first !== undefined) return { first, last };
  const found = await findFirstDay(request, yesterday);
  return found && { ...found, last };
}

/** Resolves the first day that the user gave. One before the first known one takes a request. */
async function rangeFrom(request: RangeRequest, from: Day, last: Day): Promise<ExportRange> {
  const { state, client, project, signal } = request;
  const now = request.now();
  const known = readFact(state, project, FIRST_DAY, now);
  if (known === undefined || from >= known) return { first: from, last };
  const unknown = { first: from, last: known > last ? last : addDays(known, -1) };
  const views = await viewsIn(client, unknown, { signal });
  if (views !== 'some') {
    const why = views === 'refused' ? 'refuses' : 'has no views of';
    return { first: known, last, note: `the platform ${why} ${plainDayRange(unknown)}` };
  }
  await recordFact(state, project, FIRST_DAY, undefined, now);
  return { first: from, last };
}

/** Forgets the remembered first day if there are now views before it, so that it is found again. */
async function checkStart(request: RangeRequest): Promise<void> {
  const { state, client, project, signal } = request;
  const now = request.now();
  const known = readFact(state, project, FIRST_DAY, now);
  const recent = readFact(state, project, { ...FIRST_DAY, isLimit: true }, now);
  if (known === undefined || recent !== undefined) return;
  const before = { first: addDays(known, -DAYS_BEFORE), last: addDays(known, -1) };
  const views = await viewsIn(client, before, { signal });
  await recordFact(state, project, FIRST_DAY, views === 'some' ? undefined : known, now);
}

/** No server of the API has data from before this day. */
export const EARLIEST_DAY = day('2015-01-01');

/** Lengths of ranges, in days, that are tried on a server that refuses longer ones. */
const SHORTER_RANGES = [366, 31, 1];

/** The requests of a history since the earliest day, if each day has up to 250 pages. */
export const requestsSince2015 = (last: Day): number => daysBetween(EARLIEST_DAY, last) + 1;

/** The most requests for the first day on a server that answers for every range. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/** Finds and records the first day with a view up to `yesterday`. Undefined when there is no view. */
async function findFirstDay(
  request: RangeRequest,
  yesterday: Day,
): Promise<Omit<ExportRange, 'last'> | undefined> {
  const { client, state, project, signal } = request;
  const now = request.now();
  const search = readFact(state, project, SEARCH, now) ?? (await beginSearch(request, yesterday));
  if (search === undefined) return undefined;
  const { last, length } = search;
  const answers = new Map(search.answers);
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  /** Whether the range that ends at this age has views. */
  const hasViews = async (age: number): Promise<boolean> => {
    if (!answers.has(age)) {
      const range = { first: addDays(last, 1 - Math.min(age + length, longest)), last: addDays(last, -age) };
      answers.set(age, await viewsIn(client, range, { signal }));
      await recordFact(state, project, SEARCH, { last, length, answers: [...answers] }, now);
    }
    return answers.get(age) === 'some';
  };
  // Only a refusal is tried again: other answers are facts.
  const again = async (age: number) =>
    answers.get(age) === 'refused' && answers.delete(age) && (await hasViews(age));
  const oldest = await largestConfirmed(hasViews, length, longest - 1, again);
  const isRefused = answers.get(oldest + 1) === 'refused';
  // If older ranges are refused, the history begins with the oldest range that is returned.
  const first = addDays(last, isRefused ? 1 - oldest - length : -oldest);
  if (isRefused) await recordFact(state, project, KEPT_FROM, first, now);
  await recordFact(state, project, FIRST_DAY, first, now);
  await recordFact(state, project, SEARCH, undefined, now);
  return { first, ...(isRefused ? { note: keptNote(first) } : {}) };
}

/**
 * Begins a search with the longest range up to `last` that a server answers; undefined when there is no view. Throws what
 * the client throws if not even one day is answered.
 */
async function beginSearch(request: RangeRequest, last: Day): Promise<Search | undefined> {
  const { client, state, project, signal, now } = request;
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  for (const length of [longest, ...SHORTER_RANGES]) {
    const read = length === 1 ? probeTotals : totalsIfAnswered;
    const totals = await read(client, { first: addDays(last, 1 - length), last }, { signal });
    if (totals === undefined) continue;
    if (!equalCounts(totals, NO_VIEWS)) {
      const search: Search = { last, length, answers: [] };
      await recordFact(state, project, SEARCH, search, now());
      return search;
    }
    if (length === longest) break;
    throw new ConfigurationError(
      `Could not find the first day of the history: the platform refuses ranges of more than ${counted(length, 'day')}, ` +
        'and the latest have no views. Set history.start in readership.yaml to the first day to load.',
    );
  }
  return undefined;
}

/** That a platform keeps no days before the first one. */
export const keptNote = (first: Day): string =>
  `the platform refuses days before ${longDay(first)}, so the history begins there; they are tried again after ${BELIEVED_DAYS} days`;
