/**
 * An API for views with little overhead: every page is prepared as bytes, and is the same for all projects. The numbers
 * of a path repeat every seven days, as in fill-history.sql. Its arguments are the number of paths a day and the
 * latency. It sends its address to its parent, and exits with it.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { sumCounts } from '../src/export/totals.js';

const PAGE = 250;
const DAY_MS = 86_400_000;
const paths = Number(process.argv[2]);
const latencyMs = Number(process.argv[3]);

const dayOfWeek = (date: string | null): number => (Date.parse(date ?? '') / DAY_MS) % 7;

const rowsOf = (weekday: number) =>
  Array.from({ length: paths }, (_, index) => {
    const human = (index * 7 + weekday * 13) % 90;
    const ai = (index * 11 + weekday * 17) % 70;
    return { path: `/docs/guides/page-${index}`, human, ai, total: human + ai };
  });

const week = Array.from({ length: 7 }, (_, weekday) => {
  const rows = rowsOf(weekday);
  const totals = sumCounts(rows);
  const pages = Array.from({ length: Math.ceil(paths / PAGE) }, (_, page) =>
    Buffer.from(
      JSON.stringify({
        totals,
        views: rows.slice(page * PAGE, (page + 1) * PAGE),
        hasMore: (page + 1) * PAGE < paths,
      }),
    ),
  );
  return { totals, pages };
});

function bodyOf(search: URLSearchParams): Buffer | string | undefined {
  const [from, to] = [search.get('dateFrom'), search.get('dateTo')];
  const days = (Date.parse(to ?? '') - Date.parse(from ?? '')) / DAY_MS;
  const first = dayOfWeek(from);
  if (search.get('limit') === String(PAGE)) return week[first]?.pages[Number(search.get('offset')) / PAGE];
  const totals = sumCounts(
    Array.from({ length: days }, (_, day) => week[(first + day) % 7]?.totals ?? []).flat(),
  );
  return JSON.stringify({ totals, views: rowsOf(first).slice(0, 1), hasMore: paths > 1 });
}

const server = createServer((request, response) => {
  const body = bodyOf(new URL(request.url ?? '/', 'http://bench').searchParams);
  const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  if (latencyMs === 0) answer();
  else void delay(latencyMs).then(answer);
});
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on('disconnect', () => process.exit());
