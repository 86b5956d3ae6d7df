import { addDays, type Day, daysBetween, lastEndedDay } from '../day.js';
import { plainDayRange } from '../format/days.js';
import { readFact, recordFact } from '../state/facts.js';
import { FIRST_DAY, readFirstDay, SEARCH } from './facts.js';
import { beginSearch, finishSearch, type FirstDayRequest } from './first-day.js';
import type { ExportRange } from './plan.js';
import { viewsIn } from './totals.js';

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
