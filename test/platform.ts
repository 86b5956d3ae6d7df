import type { PageViews, ViewCounts } from '../src/api/schema.js';
import { addDays, type Day, day } from '../src/day.js';
import { sumCounts } from '../src/export/totals.js';
import { reply, type SeenRequest, serve, type TestServer } from './serve.js';

/** A request for views, as the platform saw it. */
interface SeenViews {
  readonly at: Date;
  readonly from: Day;
  /** Exclusive. */
  readonly to: Day;
  readonly limit: number;
  readonly offset: number;
  readonly status: number;
}

export interface PlatformOptions {
  /** The platform's clock. */
  readonly now: () => Date;
  /** The rows of a day; none for days without views. Called for every request. */
  readonly rowsOf: (day: Day) => readonly PageViews[];
  /** Requests answered in a rolling hour, including those of others; any more are refused with 429. */
  readonly limit?: number;
  readonly othersUsed?: readonly Date[];
  /** The wait in a 429; none by default. */
  readonly retryAfter?: string;
}

/** A platform whose views a test determines, and every request that reached it. */
export interface Platform extends TestServer {
  readonly views: readonly SeenViews[];
  /** The most requests answered in any rolling hour. */
  busiestHour(): number;
}

const HOUR_MS = 3_600_000;

/** Serves views of single days and totals of ranges, until the tests of the file are over. */
export async function servePlatform(options: PlatformOptions): Promise<Platform> {
  const views: SeenViews[] = [];
  const taken: number[] = (options.othersUsed ?? []).map((at) => at.getTime());
  const server = await serve((request, response) => {
    const at = options.now();
    const date = at.toUTCString();
    // A request only for the time.
    if (request.url.pathname === '/') {
      reply(response, 404, {}, { date });
      return;
    }
    const asked = askedOf(request);
    const used = taken.filter((time) => at.getTime() - time < HOUR_MS).length;
    if (used >= (options.limit ?? Infinity)) {
      views.push({ at, ...asked, status: 429 });
      const headers = {
        date,
        ...(options.retryAfter === undefined ? {} : { 'retry-after': options.retryAfter }),
      };
      reply(response, 429, { error: 'Too many requests' }, headers);
      return;
    }
    taken.push(at.getTime());
    views.push({ at, ...asked, status: 200 });
    reply(response, 200, pageOf(asked, options.rowsOf), { date });
  });
  const busiestHour = () =>
    Math.max(0, ...taken.map((end) => taken.filter((time) => time <= end && end - time < HOUR_MS).length));
  return { ...server, seen: server.seen, views, busiestHour };
}

function askedOf({ url }: SeenRequest) {
  const text = (name: string) => url.searchParams.get(name) ?? '';
  return {
    from: day(text('dateFrom')),
    to: day(text('dateTo')),
    limit: Number(text('limit')),
    offset: Number(text('offset')),
  };
}

function pageOf({ from, to, limit, offset }: ReturnType<typeof askedOf>, rowsOf: PlatformOptions['rowsOf']) {
  const totals: ViewCounts[] = [];
  let rows: readonly PageViews[] = [];
  for (let at = from; at < to; at = addDays(at, 1)) {
    rows = rowsOf(at);
    totals.push(sumCounts(rows));
  }
  // Ranges are only requested for their totals, so the rows of the last day are enough.
  return {
    totals: sumCounts(totals),
    views: rows.slice(offset, offset + limit),
    hasMore: offset + limit < rows.length,
  };
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
