import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { reply, serve, type TestServer } from '../serve.js';

/**
 * A second server of the API that shares nothing with the sandbox or the product: arithmetic traffic, 5,000 paths a
 * day in an order that changes daily, and each answer after 50 ms.
 */

const PATHS_A_DAY = 5_000;
const LATENCY_MS = 50;
const DAY_MS = 86_400_000;

interface Counts {
  human: number;
  ai: number;
  total: number;
}

const dayNumber = (date: string): number => Date.parse(`${date}T00:00:00Z`) / DAY_MS;

function rowsOf(from: number, to: number): ({ path: string } & Counts)[] {
  const rows = new Map<string, { path: string } & Counts>();
  for (let day = from; day < to; day++)
    for (let at = 0; at < PATHS_A_DAY; at++) {
      const page = (at * 7_919 + day * 31) % (PATHS_A_DAY + 200);
      const path = `/docs/section-${page % 70}/page-${page}`;
      const [human, ai] = [(page * 7 + day * 13) % 90, (page * 11 + day * 5) % 61];
      const row = rows.get(path) ?? { path, human: 0, ai: 0, total: 0 };
      rows.set(path, { path, human: row.human + human, ai: row.ai + ai, total: row.total + human + ai });
    }
  return [...rows.values()];
}

function totalsOf(rows: readonly Counts[]): Counts {
  const totals = { human: 0, ai: 0, total: 0 };
  for (const { human, ai, total } of rows) {
    totals.human += human;
    totals.ai += ai;
    totals.total += total;
  }
  return totals;
}

async function answer(url: URL, authorization: string | undefined, response: ServerResponse): Promise<void> {
  await delay(LATENCY_MS);
  if (authorization !== 'Bearer independent') {
    reply(response, 401, { error: 'who?' });
    return;
  }
  const [from, to, limit, offset] = ['dateFrom', 'dateTo', 'limit', 'offset'].map(
    (name) => url.searchParams.get(name) ?? '',
  );
  const size = Number(limit);
  if (url.pathname !== '/api/v1/analytics/prj_2/views' || size < 1 || size > 250 || Number(offset) < 0) {
    reply(response, 400, { error: 'no' });
    return;
  }
  const rows = rowsOf(dayNumber(from ?? ''), dayNumber(to ?? ''));
  const end = Number(offset) + size;
  const views = rows.slice(Number(offset), end);
  reply(response, 200, { totals: totalsOf(rows), views, hasMore: end < rows.length });
}

export const INDEPENDENT = {
  projectId: 'prj_2',
  apiKey: 'independent',
  path: '/api',
  pathsADay: PATHS_A_DAY,
};

export const serveIndependently = (): Promise<TestServer> =>
  serve(({ url, headers }, response) => answer(url, headers.authorization, response));

/** Its totals for the days from `from` up to and including `to`. */
export const independentTotals = (from: string, to: string): Counts =>
  totalsOf(rowsOf(dayNumber(from), dayNumber(to) + 1));
