import type { ServerResponse } from 'node:http';
import { reply, type SeenRequest, serve, type TestServer } from '../serve.js';
import { inEveryWriting, KEY, WRITINGS } from './marks.js';

/** How a platform answers that echoes the key. */
export type Echo = (response: ServerResponse, request: SeenRequest) => void;

const ECHO = inEveryWriting(KEY);
const HEADERS = {
  'www-authenticate': `Bearer ${KEY}`,
  'x-request-id': KEY,
  location: `/login?key=${encodeURIComponent(KEY)}`,
};

const refused =
  (status: number, headers = {}): Echo =>
  (response) => {
    response.statusMessage = `not for ${KEY}`;
    reply(response, status, { error: ECHO, details: [{ message: ECHO }] }, { ...HEADERS, ...headers });
  };

/** Every text field contains the key, once in each encoding. */
const believed: Echo = (response, { method, url }) => {
  const words = Object.values(WRITINGS).map((write) => write(KEY));
  const counts = { human: 2, ai: 1, total: 3 };
  const views = words.map((path) => ({ path: `/login/${path}`, ...counts }));
  const perDay = views.length * daysAsked(url);
  const totals = { human: 2 * perDay, ai: perDay, total: 3 * perDay };
  const [id = '', ...others] = words;
  const source = { repository: ECHO, ref: ECHO };
  const job = { id, status: ECHO, prLink: others[0], model: ECHO, createdAt: ECHO, source };
  const isJob = method === 'POST' || url.pathname.includes('/job/');
  const limit = Number(url.searchParams.get('limit') ?? 250);
  reply(response, 200, isJob ? job : { totals, views: views.slice(0, limit), hasMore: false });
};

const DAY_MS = 86_400_000;
const daysAsked = ({ searchParams }: URL): number =>
  (Date.parse(searchParams.get('dateTo') ?? '') - Date.parse(searchParams.get('dateFrom') ?? '')) / DAY_MS;

/** The one that is not an error: its contents are stored. */
export const BELIEVED = 'what is to be believed';

/** All the ways in which a platform may echo the key. */
export const ECHOES: Readonly<Record<string, Echo>> = {
  ...Object.fromEntries([302, 400, 401, 403, 404].map((status) => [String(status), refused(status)])),
  429: refused(429, { 'retry-after': KEY }),
  '429 in plain text': (response) => response.writeHead(429, HEADERS).end(ECHO),
  500: refused(500),
  503: refused(503, { 'retry-after': '0' }),
  'a page': (response) => response.writeHead(401).end(`<!doctype html><body>${ECHO}</body>`),
  'a page where JSON was due': (response) => response.end(`<p>${ECHO}</p>`),
  'broken JSON': (response) => response.end(`{"error": ${JSON.stringify(ECHO)}`),
  'JSON of another shape': (response) =>
    reply(response, 200, { [KEY]: KEY, views: [{ path: 1, [KEY]: KEY }], totals: KEY, id: 1 }),
  'a cut connection': (response) => {
    response.writeHead(200, { 'content-length': 100_000 });
    response.write(`{"error": ${JSON.stringify(ECHO)}`, () => response.destroy());
  },
  [BELIEVED]: believed,
};

/** Serves one of them until the tests of the file are over; `seen` are the requests with their keys. */
export const serveEcho = (echo: Echo): Promise<TestServer> =>
  serve((request, response) => {
    echo(response, request);
  });
