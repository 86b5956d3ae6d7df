import type { ServerResponse } from 'node:http';
import type { PageViews, ViewCounts } from '../src/api/schema.js';
import { addDays, type Day, day, dayOf, daysBetween, startOfDay } from '../src/day.js';
import { sumCounts } from '../src/export/totals.js';
import { randomOf } from './reports/random.js';
import { reply, type SeenRequest, serve } from './serve.js';

/** What platforms do that the documented API does not promise against; each may be switched on. */
export interface Behaviors {
  /** Returns at most so many rows, whatever `limit` says. */
  readonly silentCap?: number;
  /** Refuses a larger `limit` with 400. */
  readonly largestLimit?: number;
  /** Refuses with 400 a page that ends beyond so many rows, as search engines do. */
  readonly mostRows?: number;
  /** Refuses limits above 100 for this day only. */
  readonly refusesLimitOn?: Day;
  /** Says that more follow on every page with rows. */
  readonly alwaysMore?: boolean;
  /** Gives the totals of the rows of each page, instead of all rows. */
  readonly pageTotals?: boolean;
  /** Says that no more follow on every page. */
  readonly neverMore?: boolean;
  /** Orders rows by their views, and equal ones differently in each response. */
  readonly randomTies?: boolean;
  /** Refuses days that are older with 403, although it answers for later ones. */
  readonly keepsDays?: number;
  /** Deletes old views. */
  readonly deletes?: Deletion;
  /** Counts the day in `dateTo` as well. */
  readonly inclusive?: boolean;
  /** Answers the same for a job that does not exist and for an address that does not. */
  readonly sameNotFound?: boolean;
}

/** How a platform deletes views, and answers for days of which it has none left, or only this share. */
export interface Deletion {
  readonly afterDays: number;
  /** Whether it deletes whole days. Otherwise, it deletes each view when it is so old. */
  readonly isWhole?: boolean;
  readonly answers: 'no views' | 400 | 403 | 404 | { readonly share: number };
}

export interface PlatformOptions {
  /** The platform's clock. */
  readonly now: () => Date;
  /** The rows of a day; none for days without views. Called for every request. */
  readonly rowsOf: (day: Day) => readonly PageViews[];
  /** Requests answered in a rolling hour, including those of others; any more are refused with 429. */
  readonly limit?: number | undefined;
  /** The limit is for so long instead of an hour. */
  readonly limitMs?: number | undefined;
  /** Whether a refusal says how many seconds to wait. */
  readonly saysWhen?: boolean | undefined;
  readonly othersUsed?: readonly Date[];
  readonly behaviors?: Behaviors | undefined;
  /** Views of a day that are in its totals, but in none of its rows. */
  readonly hiddenOf?: (day: Day) => number;
  /** Answers requests about agent jobs; without it, there are none. */
  readonly agents?: (request: SeenRequest, response: ServerResponse) => void;
}

const HOUR_MS = 3_600_000;

/** Serves views of single days and totals of ranges, until the tests of the file are over. */
export async function servePlatform(options: PlatformOptions) {
  /** The requests for views, as the platform saw them. */
  const views: (Asked & { readonly at: Date; readonly status: number })[] = [];
  const taken: number[] = (options.othersUsed ?? []).map((at) => at.getTime());
  const random = randomOf(7);
  const server = await serve((request, response) => {
    const at = options.now();
    const date = at.toUTCString();
    const { pathname } = request.url;
    if (options.agents !== undefined && pathname.startsWith('/v2/agent/')) {
      options.agents(request, response);
      return;
    }
    if (!/^\/v1\/analytics\/[^/]+\/views$/.test(pathname)) {
      const isJob = /^\/v2\/agent\/[^/]+\/job\/[^/]+$/.test(pathname);
      const isSame = options.behaviors?.sameNotFound === true;
      reply(response, 404, { error: isJob && !isSame ? 'No such job' : `Cannot GET ${pathname}` }, { date });
      return;
    }
    const asked = askedOf(request);
    const { limit = Infinity, limitMs = HOUR_MS, saysWhen = false } = options;
    const recent = taken.filter((time) => at.getTime() - time < limitMs);
    if (recent.length >= limit) {
      views.push({ at, ...asked, status: 429 });
      const seconds = Math.ceil(((recent[recent.length - limit] ?? 0) + limitMs - at.getTime()) / 1_000);
      const headers = saysWhen ? { date, 'retry-after': String(seconds) } : { date };
      reply(response, 429, { error: 'Too many requests' }, headers);
      return;
    }
    taken.push(at.getTime());
    const refusal = refusalOf(asked, options.behaviors ?? {}, at);
    const status = refusal?.status ?? 200;
    views.push({ at, ...asked, status });
    reply(response, status, refusal?.body ?? pageOf(asked, options, random), { date });
  });
  /** The most requests answered in any rolling hour. */
  const busiestHour = () =>
    Math.max(0, ...taken.map((end) => taken.filter((time) => time <= end && end - time < HOUR_MS).length));
  return { ...server, seen: server.seen, views, busiestHour };
}

type Asked = ReturnType<typeof askedOf>;

function askedOf({ url }: SeenRequest) {
  const text = (name: string) => url.searchParams.get(name) ?? '';
  return {
    from: day(text('dateFrom')),
    /** Exclusive. */
    to: day(text('dateTo')),
    limit: Number(text('limit')),
    offset: Number(text('offset')),
  };
}

function refusalOf(
  { from, limit, offset }: Asked,
  { largestLimit, mostRows, refusesLimitOn, keepsDays, deletes }: Behaviors,
  now: Date,
) {
  if (limit + offset > (mostRows ?? Infinity))
    return { status: 400, body: { error: `limit + offset must be less than ${mostRows}` } };
  const largest = largestLimit ?? (from === refusesLimitOn ? 100 : Infinity);
  if (limit > largest) return { status: 400, body: { error: `limit must not be greater than ${largest}` } };
  if (daysBetween(from, dayOf(now)) > (keepsDays ?? Infinity))
    return { status: 403, body: { error: `Your plan keeps ${keepsDays} days` } };
  if (deletes !== undefined && typeof deletes.answers === 'number' && shareLeft(from, deletes, now) === 0)
    return { status: deletes.answers, body: { error: 'No data for this period' } };
  return undefined;
}

/** The share of the views of a day that is not deleted, if they came evenly over the day. */
function shareLeft(at: Day, { afterDays, isWhole = false }: Deletion, now: Date): number {
  const until = isWhole ? startOfDay(dayOf(now)) : now;
  const daysOld = (until.getTime() - startOfDay(at).getTime()) / (24 * HOUR_MS);
  return Math.min(1, Math.max(0, afterDays + 1 - daysOld));
}

/** What is left of the rows of a day. */
function notDeleted(rows: readonly PageViews[], at: Day, deletes: Deletion, now: Date): PageViews[] {
  const least = typeof deletes.answers === 'object' ? deletes.answers.share : 0;
  const share = Math.max(least, shareLeft(at, deletes, now));
  return rows.flatMap(({ path, human, ai }) => {
    const [people, machines] = [Math.floor(share * human), Math.floor(share * ai)];
    const total = people + machines;
    return total === 0 ? [] : { path, human: people, ai: machines, total };
  });
}

function pageOf(
  { from, to, limit, offset }: Asked,
  { rowsOf, hiddenOf = () => 0, behaviors = {}, now }: PlatformOptions,
  random: () => number,
) {
  const { silentCap = Infinity, alwaysMore = false, neverMore = false, pageTotals = false } = behaviors;
  const { randomTies = false, inclusive = false } = behaviors;
  const totals: ViewCounts[] = [];
  let rows: readonly PageViews[] = [];
  const end = inclusive ? addDays(to, 1) : to;
  for (let at = from; at < end; at = addDays(at, 1)) {
    // Ranges are only requested for their totals, so the rows of the last day are enough.
    rows = behaviors.deletes ? notDeleted(rowsOf(at), at, behaviors.deletes, now()) : rowsOf(at);
    totals.push(sumCounts(rows), { human: hiddenOf(at), ai: 0, total: hiddenOf(at) });
  }
  if (randomTies)
    rows = rows
      .map((row) => ({ row, tie: random() }))
      .sort((one, other) => other.row.total - one.row.total || one.tie - other.tie)
      .map(({ row }) => row);
  const views = rows.slice(offset, offset + Math.min(limit, silentCap));
  const isBeforeLast = offset + views.length < rows.length;
  const hasMore = !neverMore && (alwaysMore ? views.length > 0 : isBeforeLast);
  return { totals: sumCounts(pageTotals ? views : totals), views, hasMore };
}

/** `pages` pages of a day, the same for the same day, and different ones for different days. */
export function rowsOf(at: Day, pages: number): PageViews[] {
  const seed = Number(at.replaceAll('-', '')) % 97;
  return Array.from({ length: pages }, (_, index) => {
    const human = 1 + ((seed + index * 7) % 23);
    const ai = (seed + index) % 5;
    return { path: `/page-${index}`, human, ai, total: human + ai };
  });
}
