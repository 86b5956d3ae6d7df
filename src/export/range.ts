import { addDays as addDaysTo } from 'date-fns';
import { z } from 'zod';
import type { Client } from '../api/client.js';
import { addDays, type Day, daysBetween, lastEndedDay } from '../day.js';
import { plainDayRange } from '../format/days.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { findFirstDay } from './first-day.js';
import type { ExportRange } from './plan.js';
import { equalCounts, NO_VIEWS, totalsIfAnswered } from './totals.js';

const HISTORY_START = readSql(import.meta.url, 'statements/history-start.sql');
const RECORD_HISTORY_START = readSql(import.meta.url, 'statements/record-history-start.sql');
const FORGET_HISTORY_START = 'DELETE FROM history_starts WHERE project = $project';

/** So often, a remembered first day is checked with one request for the totals of the days just before it. */
const CHECK_EVERY_DAYS = 30;

/** Fewer days than this are loaded without asking whether there are views at all. */
const FEW_DAYS = 14;

export interface RangeRequest {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views'>;
  readonly project: string;
  /** Where the history begins: a day, or `auto` to ask the platform and remember. */
  readonly start: Day | 'auto';
  /** Bounds of the export, both included, where the user gave them. */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly now: Date;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The days an export covers: never today, which has not ended, and none from before the first view where that is
 * searched for. Undefined when the platform has no view yet.
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

/** The first day with a view, where it was looked for and found. */
export async function readHistoryStart(reader: Reader, project: string): Promise<Day | undefined> {
  return (await readStart(reader, project))?.day;
}

async function readStart(reader: Reader, project: string) {
  const row = z.object({ day: dayColumn, found_at: timestampColumn });
  const [known] = await reader.query(HISTORY_START, row, { project });
  return known;
}

/** How many requests `resolveRange` sends where the first day is known or given. */
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

const isDueForCheck = ({ found_at: foundAt }: { readonly found_at: Date }, now: Date): boolean =>
  now >= addDaysTo(foundAt, CHECK_EVERY_DAYS);

/** Where the user says that the export begins, with one request at most. */
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

/** The first day as it was found; undefined when there are views before it by now, so that it has to be found again. */
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
