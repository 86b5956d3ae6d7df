import { z } from 'zod';
import type { Client } from '../api/client.js';
import { RefusedError } from '../api/errors.js';
import { addDays, type Day, day, daysBetween, type DayRange } from '../day.js';
import { messageOf, ReadershipError } from '../errors.js';
import { longDay } from '../format/days.js';
import { dayColumn, type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { KEPT_FROM, readFact, recordFact, SEARCH, type Search } from './facts.js';
import { readDayLedger, storeEmptyDays } from './ledger.js';
import type { ExportRange } from './plan.js';
import { equalCounts, NO_VIEWS, probeTotals, sumCounts, totalsIfAnswered } from './totals.js';

const HISTORY_START = readSql(import.meta.url, 'statements/history-start.sql');
const RECORD_HISTORY_START = readSql(import.meta.url, 'statements/record-history-start.sql');
const FORGET_HISTORY_START = 'DELETE FROM history_starts WHERE project = $project';

/** No server of the API has data from before this day. */
export const EARLIEST_DAY = day('2015-01-01');

/** A stretch of at least so many empty days after the first one shows that the first one is a stray. */
const STRAY_DAYS = 30;

/** Lengths of ranges, in days, that are tried on a server that refuses longer ones. */
const SHORTER_RANGES = [366, 31, 1];

/** A project whose first day is searched for. */
export interface FirstDayRequest {
  readonly warehouse: Warehouse;
  readonly client: Pick<Client, 'views'>;
  readonly project: string;
  readonly now: Date;
  readonly signal?: AbortSignal | undefined;
}

/** The first day with a view, if it was searched for and found. */
export async function readHistoryStart(reader: Reader, project: string): Promise<Day | undefined> {
  return (await readStart(reader, project))?.day;
}

export async function readStart(reader: Reader, project: string) {
  const row = z.object({ day: dayColumn, found_at: timestampColumn });
  const [known] = await reader.query(HISTORY_START, row, { project });
  return known;
}

/** Remembers the first day, or forgets it, so that the next export without bounds finds it again. */
export const recordStart = (
  { warehouse, project, now }: FirstDayRequest,
  firstDay: Day | undefined,
): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(FORGET_HISTORY_START, { project });
    if (firstDay !== undefined)
      await transaction.execute(RECORD_HISTORY_START, { project, first_day: firstDay, now });
  });

/** The start of the history cannot be determined from the platform. */
class FirstDayError extends ReadershipError {
  readonly exitCode = 1;

  constructor(why: string) {
    super(
      `Could not find the first day of the history: ${why} To export without this search, set history.start in readership.yaml to the first day to load.`,
    );
  }
}

/** The requests of a history since the earliest day, if each day has up to 250 pages. */
export const mostRequests = (last: Day): number => daysBetween(EARLIEST_DAY, last) + 1;

/** The most requests for the first day on a server that answers for every range. */
export const requestsToFindFirstDay = (last: Day): number =>
  1 + 2 * Math.ceil(Math.log2(daysBetween(EARLIEST_DAY, last) + 1));

/**
 * Begins the search for the first day with a view up to `last`, or continues the one that an earlier
 * export began. Undefined when there is no view. On a server that refuses long ranges, it looks for
 * the longest that is answered. Throws a `FirstDayError` if none is.
 */
export async function beginSearch(request: FirstDayRequest, last: Day): Promise<Search | undefined> {
  const { client, warehouse, project, signal, now } = request;
  const begun = await readFact(warehouse, project, SEARCH, now);
  if (begun !== undefined) return begun;
  const longest = daysBetween(EARLIEST_DAY, last) + 1;
  let isRefused = false;
  for (const most of [longest, ...SHORTER_RANGES]) {
    const length = Math.min(most, longest);
    const totals = await totalsIfAnswered(client, { first: addDays(last, 1 - length), last }, { signal });
    const isLongest = length === longest;
    if (totals !== undefined && !equalCounts(totals, NO_VIEWS))
      return {
        last,
        length,
        known: 0,
        beyond: longest,
        isOpen: !isLongest,
        isRefused: false,
        views: isLongest ? [[0, totals.total]] : [],
      };
    if (totals !== undefined && isLongest) return undefined;
    if (totals !== undefined)
      throw new FirstDayError(
        `the platform refuses ranges of more than ${length} days, and the latest ones have no views.`,
      );
    if (!isRefused) await expectAnswer(request, last);
    isRefused = true;
  }
  throw new FirstDayError('the platform refuses every range.');
}

/** Searches on from where it stopped, with every answer recorded, so that it ends at any hourly limit. */
export async function finishSearch(
  request: FirstDayRequest,
  begun: Search,
  lastDay: Day,
): Promise<ExportRange> {
  const { client, warehouse, project, signal, now } = request;
  const ask = async (search: Search, age: number): Promise<Search> => {
    const end = addDays(search.last, -age);
    const longest = daysBetween(EARLIEST_DAY, end) + 1;
    const range = { first: addDays(end, 1 - Math.min(search.length, longest)), last: end };
    const totals = await totalsIfAnswered(client, range, { signal });
    const hasViews = totals !== undefined && !equalCounts(totals, NO_VIEWS);
    const found = {
      ...search,
      ...(hasViews ? { known: Math.max(age, search.known) } : { beyond: age, isOpen: false }),
      isRefused: hasViews ? search.isRefused : totals === undefined,
      views: isWhole(search) ? [...search.views, [age, totals?.total ?? 0] as [number, number]] : [],
    };
    await recordFact(warehouse, project, SEARCH, found, now);
    return found;
  };
  let search = begun;
  const perDay = await viewsPerDay(warehouse, project);
  for (let age = nextAge(search, perDay); age !== undefined; age = nextAge(search, perDay))
    search = await ask(search, age);
  const { last, known, length, isRefused } = search;
  // If older ranges are refused, the history begins with the oldest range that is returned.
  const first = addDays(last, isRefused ? 1 - known - length : -known);
  for (let age = ageInStretch(search); age !== undefined; age = ageInStretch(search))
    search = await ask(search, age);
  const empty = emptyStretch(search);
  if (empty !== undefined) await storeEmptyDays(warehouse, project, empty, now);
  if (isRefused) await recordFact(warehouse, project, KEPT_FROM, first, now);
  await recordStart(request, first);
  await recordFact(warehouse, project, SEARCH, undefined, now);
  return { first, last: lastDay, ...(isRefused ? { note: keptNote(first) } : {}) };
}

/** That a platform keeps no days before the first one. */
export const keptNote = (first: Day): string =>
  `the platform refuses days before ${longDay(first)}, so the history begins there`;

const isWhole = ({ views }: Search): boolean => views.length > 0;

/** After so many guesses, the search only halves: views may be spread in any way. */
const MOST_GUESSES = 10;

/** Which age to ask for next; undefined once the first day is known. Guesses it from the views of older and newer days. */
export function nextAge(search: Search, viewsPerDay: number): number | undefined {
  const { known, beyond, length, isOpen, views } = search;
  const further = Math.max(length, 2 * known);
  if (isOpen && further < beyond) return further;
  if (beyond - known <= 1) return undefined;
  const newer = views.filter(([age]) => age < known).sort(([one], [other]) => other - one)[0];
  const left = viewsAt(search, known);
  const perDay = newer === undefined ? viewsPerDay : (newer[1] - left) / (known - newer[0]);
  if (!isWhole(search) || views.length > MOST_GUESSES || perDay <= 0) return Math.floor((known + beyond) / 2);
  // From the other side than before, so that the first day is soon between two answers.
  const share = views.length === 1 ? 1 : views.at(-1)?.[1] === 0 ? 0.9 : 1.1;
  const guess = Math.ceil((left / perDay) * share);
  return known + Math.max(1, Math.min(guess, Math.floor((beyond - known) * 0.75)));
}

const viewsAt = ({ views }: Search, at: number): number => views.find(([age]) => age === at)?.[1] ?? 0;

/** The ages of the empty days that follow the first day, as far as is known, and the newest age that is not one. */
function stretchOf(search: Search): { newest: number; before: number } | undefined {
  const ages = search.views.map(([age]) => age).filter((age) => age <= search.known);
  const same = ages.filter((age) => viewsAt(search, age) === viewsAt(search, search.known));
  const newest = Math.min(...same);
  const before = Math.max(...ages.filter((age) => age < newest));
  return search.known - newest < STRAY_DAYS ? undefined : { newest, before };
}

/** Which age to ask for next to find the end of a long stretch of empty days after the first one. */
function ageInStretch(search: Search): number | undefined {
  const { newest = 0, before = 0 } = stretchOf(search) ?? {};
  return newest - before > 1 ? Math.floor((newest + before) / 2) : undefined;
}

function emptyStretch(search: Search): DayRange | undefined {
  const stretch = stretchOf(search);
  if (stretch === undefined) return undefined;
  return { first: addDays(search.last, 1 - search.known), last: addDays(search.last, -stretch.newest) };
}

/** Views of a stored day, on average. */
async function viewsPerDay(reader: Reader, project: string): Promise<number> {
  const stored = [...(await readDayLedger(reader, project)).values()].filter((record) => record.is_stored);
  return stored.length === 0 ? 0 : sumCounts(stored).total / stored.length;
}

/** If a single day is refused too, neither the length of the range nor its age is the reason. */
async function expectAnswer({ client, signal }: FirstDayRequest, day: Day): Promise<void> {
  try {
    await probeTotals(client, { first: day, last: day }, { signal });
  } catch (error) {
    if (!(error instanceof RefusedError) || [401, 402, 403, 404].includes(error.status)) throw error;
    throw new FirstDayError(messageOf(error));
  }
}
