/**
 * An API for views with little overhead: the pages of a day are prepared as bytes. Its rows are those of
 * fill-history.sql. Its argument is the shape of the history as JSON. It sends its address to its parent, and exits with it.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { sumCounts } from '../src/export/totals.js';
import type { Served } from './processes.js';

const PAGE = 250;
const DAY_MS = 86_400_000;
const {
  paths,
  daily = paths,
  projects = 1,
  first = '1970-01-01',
  latencyMs = 0,
} = JSON.parse(process.argv[2] ?? '') as Served;

const dayNumber = (date: string | null): number => Date.parse(date ?? '') / DAY_MS;

/** Whether a path is viewed so many days after the first one. */
function isViewed(path: number, day: number): boolean {
  if (daily === paths) return true;
  const every = Math.max(1, Math.floor(path / daily));
  const offset = (path * 7919) % every;
  return day >= offset && (day - offset) % every === 0;
}

function prepare(day: number, project: number) {
  const weekday = day % 7;
  const age = day - dayNumber(first);
  const rows = Array.from({ length: paths }, (_, path) => path)
    .filter((path) => path % projects === project && isViewed(path, age))
    .map((path) => {
      const human = (path * 7 + weekday * 13) % 90;
      const ai = (path * 11 + weekday * 17) % 70;
      return { path: `/docs/guides/page-${path}`, human, ai, total: human + ai };
    });
  const totals = sumCounts(rows);
  const pages = Array.from({ length: Math.max(1, Math.ceil(rows.length / PAGE)) }, (_, page) =>
    Buffer.from(
      JSON.stringify({
        totals,
        views: rows.slice(page * PAGE, (page + 1) * PAGE),
        hasMore: (page + 1) * PAGE < rows.length,
      }),
    ),
  );
  return { totals, pages };
}

const prepared = new Map<string, ReturnType<typeof prepare>>();

/** Days on which every path is viewed repeat every week. */
function dayOf(number: number, project: number) {
  const kept = daily === paths ? number % 7 : number;
  const key = `${kept} ${project}`;
  const day = prepared.get(key) ?? prepare(kept, project);
  prepared.set(key, day);
  return day;
}

function bodyOf({ pathname, searchParams: search }: URL): Buffer | string | undefined {
  const project = Number(/prj_(\d+)/.exec(pathname)?.[1]) % projects;
  const [from, to] = [dayNumber(search.get('dateFrom')), dayNumber(search.get('dateTo'))];
  if (search.get('limit') === String(PAGE))
    return dayOf(from, project).pages[Number(search.get('offset')) / PAGE];
  const totals = sumCounts(Array.from({ length: to - from }, (_, day) => dayOf(from + day, project).totals));
  return JSON.stringify({
    totals,
    views: [{ path: '/docs/guides/page-0', human: 0, ai: 0, total: 0 }],
    hasMore: paths > 1,
  });
}

const server = createServer((request, response) => {
  const body = bodyOf(new URL(request.url ?? '/', 'http://bench'));
  const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  if (latencyMs === 0) answer();
  else void delay(latencyMs).then(answer);
});
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on('disconnect', () => process.exit());
