import { addDays as addDaysTo } from 'date-fns';
import { z } from 'zod';
import type { Client, ReadOptions } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import { addDays, type Day, day, daysBetween, lastEndedDay } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { plainDayRange } from '../format/days.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import type { ExportRange } from './plan.js';
import { equalCounts, NO_VIEWS, probeTotals, totalsIfAnswered } from './totals.js';

const HISTORY_START = readSql(import.meta.url, 'statements/history-start.sql');
const RECORD_HISTORY_START = readSql(import.meta.url, 'statements/record-history-start.sql');
const FORGET_HISTORY_START = 'DELETE FROM history_starts WHERE project = $project';

/** How often a remembered first day is checked, with one request for the totals of the days just before it. */
const CHECK_EVERY_DAYS = 30;

/** Fewer days than this are loaded without first checking whether there are any views. */
const FEW_DAYS = 14;

/** No server of the API has data from before this day. */
const EARLIEST_DAY = day('2015-01-01');

/** Lengths of ranges, in days, that are tried on a server that refuses longer ones. */
const SHORTER_RANGES = [366, 31, 1];

export interface RangeRequest {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views'>;
  readonly project: string;
  /** The start of the history: a day, or `auto` to find it on the platform and remember it. */
  readonly start: Day | 'auto';
  /** The first and last day of the export, if the user gave them. */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly now: Date;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The days that an export covers: never today, which has not ended, and with `auto` none from before the first view.
 * Undefined if the platform has no views yet.
 */
export async function resolveRange(request: RangeRequest): Promise<ExportRange | undefined> {
  const { start, from, to, now } = request;
  const yesterday = lastEndedDay(now);
  const last = to !== undefined && to < yesterday ? to : yesterday;
  if (start !== 'auto') return { first: from ?? start, last };
  if (from !== undefined) return rangeFrom(request, from, last);
  const first = (await rememberedStart(request)) ?? (await findStart(request, yesterday));
  return first === undefined ? undefined : { first, last };
}

/** The first day with a view, if it was searched for and found. */
export async function readHistoryStart(reader: Reader, project: string): Promise<Day | undefined> {
  return (await readStart(reader, project))?.day;
}

async function readStart(reader: Reader, project: string) {
  const row = z.object({ day: dayColumn, found_at: timestampColumn });
  const [known] = await reader.query(HISTORY_START, row, { project });
  return known;
}

/** How many requests `resolveRange` sends if the first day is known or given. */
export async function requestsForRange(
  reader: Reader,
  { project, start, from, to, now }: Pick<RangeRequest, 'project' | 'start' | 'from' | 'to' | 'now'>,
): Promise<number> {
  if (start !== 'auto') return 0;
  const known = await readStart(reader, project);
  if (from === undefined) return known !== undefined && isDueForCheck(known, now) ? 1 : 0;
  if (known !== undefined) return from < known.day ? 1 : 0;
  return daysBetween(from, to ?? lastEndedDay(now)) < FEW_DAYS ? 0 : 1;
}

/** Also if a clock that was ahead dated it in the future. */
const isDueForCheck = ({ found_at: foundAt }: { readonly found_at: Date }, now: Date): boolean =>
  foundAt > now || now >= addDaysTo(foundAt, CHECK_EVERY_DAYS);

/** Resolves the first day that the user gave, with at most one request. */
async function rangeFrom(request: RangeRequest, from: Day, last: Day): Promise<ExportRange | undefined> {
  const known = await readHistoryStart(request.warehouse, request.project);
  if (known !== undefined && from >= known) return { first: from, last };
  if (known === undefined && daysBetween(from, last) < FEW_DAYS) return { first: from, last };
  const before = { first: from, last: known === undefined ? last : earlier(addDays(known, -1), last) };
  const totals = await totalsIfAnswered(request.client, before, { signal: request.signal });
  if (known === undefined)
    return totals !== undefined && equalCounts(totals, NO_VIEWS) ? undefined : { first: from, last };
  if (totals !== undefined && !equalCounts(totals, NO_VIEWS)) {
    await recordStart(request, undefined);
    return { first: from, last };
  }
  const why = totals === undefined ? 'refuses' : 'has no views of';
  return { first: known, last, note: `the platform ${why} ${plainDayRange(before)}` };
}

const earlier = (one: Day, other: Day): Day => (one < other ? one : other);

/** The remembered first day; undefined if there are now views before it, so that it must be found again. */
async function rememberedStart(request: RangeRequest): Promise<Day | undefined> {
  const { warehouse, client, project, now, signal } = request;
  const known = await readStart(warehouse, project);
  if (known === undefined || !isDueForCheck(known, now)) return known?.day;
  const before = { first: addDays(known.day, -CHECK_EVERY_DAYS), last: addDays(known.day, -1) };
  const totals = await totalsIfAnswered(client, before, { signal });
  if (totals !== undefined && !equalCounts(totals, NO_VIEWS)) return undefined;
  await recordStart(request, known.day);
  return known.day;
}

async function findStart(request: RangeRequest, yesterday: Day): Promise<Day | undefined> {
  const firstDay = await findFirstDay(request.client, yesterday, { signal: request.signal });
  if (firstDay !== undefined) await recordStart(request, firstDay);
  return firstDay;
}

/** Remembers the first day, or forgets it, so that the next export without bounds finds it again. */
const recordStart = ({ warehouse, project, now }: RangeRequest, firstDay: Day | undefined): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_HISTORY_START, { project });
    if (firstDay !== undefined)
      await transaction.execute(RECORD_HISTORY_START, { project, first_day: firstDay, now });
  });

/** The start of the history cannot be determined from the platform. */
class FirstDayError extends ReadershipError {
  readonly exitCode = 1;

  constructor(why: string, options?: ErrorOptions) {
    super(
      `Could not find the first day of the history: ${why} To export without this search, set history.start in readership.yaml to the first day to load.`,
      options,
    );
  }
}

/** The requests of a history since the earliest day, if each day has up to 250 pages. */
export const mostRequests = (last: Day): number => daysBetween(EARLIEST_DAY, last) + 1;

/** The most requests that `findFirstDay` sends to a server that answers for every range. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/**
 * The first day with a view up to `last`: one request, and one more for each halving of the days
 * before it. Undefined when there is none. On a server that refuses long ranges it goes back in
 * growing steps, to days that have no views or are refused as well. Throws a `FirstDayError` if
 * that is not possible either.
 */
async function findFirstDay(
  client: Pick<Client, 'views'>,
  last: Day,
  options?: ReadOptions,
): Promise<Day | undefined> {
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  const refused = new Set<number>();
  let length = longest;
  /** Whether there are views up to the day `age` days before the last; undefined if refused. */
  const hasViewsAt = async (age: number): Promise<boolean | undefined> => {
    const end = addDays(last, -age);
    const range = { first: addDays(end, 1 - Math.min(length, longest - age)), last: end };
    const totals = await totalsIfAnswered(client, range, options);
    if (totals === undefined) refused.add(age);
    return totals && !equalCounts(totals, NO_VIEWS);
  };

  let found = await hasViewsAt(0);
  if (found === undefined) await expectAnswer(client, last, options);
  for (const shorter of SHORTER_RANGES) {
    if (found !== undefined) break;
    length = Math.min(shorter, longest);
    found = await hasViewsAt(0);
  }
  if (found !== true && length === longest) return undefined;
  if (found !== true)
    throw new FirstDayError(
      `the platform refuses ranges of more than ${length} days, and the latest ones have no views.`,
    );

  let known = 0;
  let beyond = longest;
  if (length < longest)
    for (beyond = length; beyond < longest && (await hasViewsAt(beyond)) === true; beyond *= 2)
      known = beyond;
  beyond = Math.min(beyond, longest);
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2);
    if ((await hasViewsAt(middle)) === true) known = middle;
    else beyond = middle;
  }
  // If older ranges are refused, the history begins with the oldest range that is returned.
  return addDays(last, refused.has(beyond) ? 1 - known - length : -known);
}

/** If a single day is refused too, the length of the range is not the reason. */
async function expectAnswer(client: Pick<Client, 'views'>, day: Day, options?: ReadOptions): Promise<void> {
  try {
    await probeTotals(client, { first: day, last: day }, options);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    throw new FirstDayError(messageOf(error), { cause: error });
  }
}
