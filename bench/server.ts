/**
 * A views API server with minimal overhead: every page of a day is the same bytes. Serves any day
 * since 2015. Its arguments are the number of paths per day and the latency. Prints its address,
 * and exits when its parent does.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const PAGE = 250;
const paths = Number(process.argv[2]);
const latencyMs = Number(process.argv[3]);

const row = (index: number) => ({
  path: `/docs/guides/page-${index}`,
  human: index % 90,
  ai: index % 70,
  total: (index % 90) + (index % 70),
});
const rows = Array.from({ length: paths }, (_, index) => row(index));
const totals = {
  human: rows.reduce((sum, { human }) => sum + human, 0),
  ai: rows.reduce((sum, { ai }) => sum + ai, 0),
  total: rows.reduce((sum, { total }) => sum + total, 0),
};
const pages = Array.from({ length: Math.ceil(paths / PAGE) }, (_, page) =>
  Buffer.from(
    JSON.stringify({
      totals,
      views: rows.slice(page * PAGE, (page + 1) * PAGE),
      hasMore: (page + 1) * PAGE < paths,
    }),
  ),
);

const server = createServer((request, response) => {
  const offset = Number(new URL(request.url ?? '/', 'http://bench').searchParams.get('offset') ?? 0);
  const body = pages[offset / PAGE];
  const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  if (latencyMs === 0) answer();
  else void delay(latencyMs).then(answer);
});
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on('disconnect', () => process.exit());
