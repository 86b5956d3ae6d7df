import { z } from 'zod';
import type { Client, ReadOptions } from '../api/client.js';
import { addDays, type Day, day, daysBetween, type DayRange, lastEndedDay } from '../day.js';
import { dayColumn, type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { equalCounts, NO_VIEWS, probeTotals } from './totals.js';

const HISTORY_START = readSql(import.meta.url, 'statements/history-start.sql');
const RECORD_HISTORY_START = readSql(import.meta.url, 'statements/record-history-start.sql');

export interface RangeRequest {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views'>;
  readonly project: string;
  /** Where the history begins: a day, or `auto` to ask the platform once and remember. */
  readonly start: Day | 'auto';
  /** Bounds of the export, both included, where the user gave them. */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly now: Date;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The days an export covers: never today, which has not ended, and none from before the first view, where that is to be
 * found. Undefined when the platform has no view yet.
 */
export async function resolveRange(request: RangeRequest): Promise<DayRange | undefined> {
  const yesterday = lastEndedDay(request.now);
  const last = request.to !== undefined && request.to < yesterday ? request.to : yesterday;
  if (request.start !== 'auto') return { first: request.from ?? request.start, last };
  const known = await readHistoryStart(request.warehouse, request.project);
  if (known === undefined && request.from !== undefined && isCheaperThanSearch(request.from, last, yesterday))
    return { first: request.from, last };
  const start = known ?? (await findStart(request, yesterday));
  return start === undefined ? undefined : { first: later(start, request.from), last };
}

/** Whether a few days are read sooner than the first view is found. */
const isCheaperThanSearch = (from: Day, last: Day, yesterday: Day): boolean =>
  daysBetween(from, last) < requestsToFindFirstDay(yesterday);

/** Where a history that starts at `start` is to be exported from; before its first view there is nothing. */
export const later = (start: Day, from: Day | undefined): Day =>
  from !== undefined && from > start ? from : start;

/** The first day with a view, where it was looked for and found. */
export async function readHistoryStart(reader: Reader, project: string): Promise<Day | undefined> {
  const [known] = await reader.query(HISTORY_START, z.object({ day: dayColumn }), { project });
  return known?.day;
}

async function findStart(request: RangeRequest, yesterday: Day): Promise<Day | undefined> {
  const { warehouse, client, project, now, signal } = request;
  const firstDay = await findFirstDay(client, yesterday, { signal });
  if (firstDay === undefined) return undefined;
  await warehouse.transaction((transaction) =>
    transaction.execute(RECORD_HISTORY_START, { project, first_day: firstDay, now }),
  );
  return firstDay;
}

/** No server of the interface has data from before this day. */
const EARLIEST_DAY = day('2015-01-01');

/** The most requests that `findFirstDay` sends. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/**
 * The first day with a view up to `last`, by bisection over the totals of everything before: one request, and one more
 * for each halving. Undefined when there is none.
 */
async function findFirstDay(
  client: Pick<Client, 'views'>,
  last: Day,
  options?: ReadOptions,
): Promise<Day | undefined> {
  const hasViewsUpTo = async (candidate: Day) =>
    !equalCounts(await probeTotals(client, { first: EARLIEST_DAY, last: candidate }, options), NO_VIEWS);
  if (!(await hasViewsUpTo(last))) return undefined;
  let low = 0;
  let high = daysBetween(EARLIEST_DAY, last);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await hasViewsUpTo(addDays(EARLIEST_DAY, middle))) high = middle;
    else low = middle + 1;
  }
  return addDays(EARLIEST_DAY, low);
}
