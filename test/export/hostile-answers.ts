import type { ServerResponse } from 'node:http';
import type { PageViews } from '../../src/api/schema.js';
import { sumCounts } from '../../src/export/totals.js';
import { reply } from '../serve.js';
import { row } from './moving-views.js';

/** The recorded state of a day after such answers to all of its requests; undefined if it is not recorded. */
type Outcome = 'failed' | 'final' | 'inconsistent' | undefined;

type Answer = readonly [
  name: string,
  outcome: Outcome,
  answer: (response: ServerResponse, url: URL) => unknown,
];

export const ROWS: readonly PageViews[] = [row('/a', 300, 20), row('/b', 40), row('/c', 5, 7)];
const PAGE = { totals: sumCounts(ROWS), views: ROWS, hasMore: false };
const WHOLE = JSON.stringify(PAGE);

const status = (code: number, body: string | object = { error: 'no' }, headers = {}): Answer => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const said = Object.entries(headers).map(([name, value]) => `, ${name}: ${String(value)}`);
  return [
    `${code} ${text.slice(0, 40)}${said.join('')}`,
    'failed',
    (response) => response.writeHead(code, headers).end(text),
  ];
};

const HTML = '<!doctype html><title>Sorry</title><h1>It does not work</h1>';
const DETAILED = { error: 'no', details: { day: 'too old', more: [1, null] } };
const BODIES = [{ error: 'no' }, 'no', '', HTML, DETAILED];
/** What each status means is in test/api/errors.test.ts. */
const FAILURES = [301, 304, 400, 401, 402, 403, 404, 408, 410, 422, 499, 500, 503, 599].map((code, index) =>
  status(code, BODIES[index % BODIES.length]),
);
const COME_BACK = [
  ...['0', 'soon', '3600', 'Fri, 18 Nov 2050 05:00:00 GMT'].map((wait) =>
    status(503, 'busy', { 'retry-after': wait }),
  ),
  status(429, 'slow down', { 'retry-after': '0' }),
  status(429, 'slow down'),
];
/** A pause that the server requests applies to all days, so the day itself has not failed. */
const LONG_PAUSES = ['60', '99999999999'].map((wait): Answer => [
  `429, retry-after: ${wait}`,
  undefined,
  (response) => reply(response, 429, { error: 'slow down' }, { 'retry-after': wait }),
]);

const text = (name: string, body: string | Buffer, outcome: Outcome = 'failed'): Answer => [
  name,
  outcome,
  (response) => response.end(body),
];
const json = (name: string, body: unknown, outcome: Outcome = 'failed'): Answer =>
  text(name, JSON.stringify(body), outcome);
const many = (count: number) => Array.from({ length: count }, (_, index) => row(`/page-${index}`, 1));

const WRONG_BODIES: readonly Answer[] = [
  ...['', 'null', '7', '"text"', '[]', '{}', HTML, WHOLE.slice(0, 60), WHOLE + WHOLE, `${WHOLE}}`].map(
    (body) => text(`200 ${body.slice(0, 40)}`, body),
  ),
  ['204 without a body', 'failed', (response) => response.writeHead(204).end()],
  text('bytes that are not text', Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28])),
  text('UTF-16', Buffer.from(WHOLE, 'utf16le')),
  text('JSON nested too deeply', '['.repeat(200_000)),
  // The other bodies that do not match the API are in test/api/schema.test.ts.
  ...[2 ** 50, 9_007_199_254_740_000, 1e300].flatMap((many) => {
    const huge = { path: '/a', human: many, ai: 0, total: many };
    return [
      json(`${many} views of a page`, { totals: sumCounts([huge]), views: [huge], hasMore: false }),
      json(`${many} views in the totals only`, { ...PAGE, totals: sumCounts([huge]) }),
    ];
  }),
  json('pages that add up to too many views', {
    totals: sumCounts(ROWS),
    views: ['/a', '/b'].map((path) => row(path, 2 ** 49)),
    hasMore: false,
  }),
];

const ODD_BODIES: readonly Answer[] = [
  json('unknown fields', { ...PAGE, next: 'x', totals: { ...PAGE.totals, bots: 1 } }, 'final'),
  text('a prototype as a field', WHOLE.replace('{', '{"__proto__":{"hasMore":true},'), 'final'),
  text('a byte order mark', `\uFEFF${WHOLE}`, 'final'),
  text('17 MB', Buffer.alloc(17_000_000, ' ')),
  json('a path twice', { ...PAGE, views: [row('/a', 100), row('/a', 200, 20), ...ROWS.slice(1)] }, 'final'),
  json('a row twice that does not', { ...PAGE, views: [...ROWS, ROWS[0]] }, 'final'),
  json('few views without a page', { ...PAGE, views: ROWS.slice(0, 2), totals: sumCounts(ROWS) }, 'final'),
  json('many views without a page', { ...PAGE, views: ROWS.slice(1) }, 'inconsistent'),
  json('rows without totals', { ...PAGE, totals: { human: 0, ai: 0, total: 0 } }, 'inconsistent'),
  json(
    'a total that is not human + ai',
    { ...PAGE, views: [{ ...ROWS[0], total: 1 }], totals: { ...ROWS[0], total: 1 } },
    'final',
  ),
  json('400 rows at once', { totals: sumCounts(many(400)), views: many(400), hasMore: false }, 'final'),
  json('an empty page with more to follow', { ...PAGE, views: [], hasMore: true }, 'inconsistent'),
  json('a short page with more to follow', { ...PAGE, hasMore: true }, 'final'),
  json('a whole page for ever', { totals: sumCounts(many(250)), views: many(250), hasMore: true }, 'final'),
  json('the same page for ever', { totals: sumCounts(many(251)), views: many(250), hasMore: true }),
  [
    'pages without end',
    'failed',
    (response, url) => {
      const offset = Number(url.searchParams.get('offset'));
      const views = many(250).map((one) => ({ ...one, path: `${one.path}-${offset}` }));
      // Instead of a million pages, every tenth page repeats the first.
      reply(response, 200, {
        totals: sumCounts(many(9_000)),
        views: offset < 2_500 ? views : many(250),
        hasMore: offset < 5_000,
      });
    },
  ],
];

/** What else cuts a response short, and encodings, are in test/api. */
const NO_ANSWERS: readonly Answer[] = [
  ['no answer at all', 'failed', () => undefined],
  ['not HTTP', 'failed', (response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n')],
  [
    'headers without end',
    'failed',
    (response) => response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`),
  ],
  [
    'hints before the answer',
    'final',
    (response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.end(WHOLE);
    },
  ],
];

export const HOSTILE_ANSWERS: readonly Answer[] = [
  ...FAILURES,
  ...COME_BACK,
  ...LONG_PAUSES,
  ...WRONG_BODIES,
  ...ODD_BODIES,
  ...NO_ANSWERS,
];

export const wellAnswered = (response: ServerResponse): void => {
  reply(response, 200, PAGE);
};
