import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/app/open.js';
import { addDays, day, daysIn } from '../../src/day.js';
import { readDayRecords } from '../../src/export/day-records.js';
import { sumCounts } from '../../src/export/totals.js';
import type { HistoryStore } from '../../src/history/store.js';
import { openClient } from '../api/open-client.js';
import { paceOn } from '../api/open-pace.js';
import { type OpenState, openTestState } from '../open-state.js';
import { reply, serve, type TestServer } from '../serve.js';
import { sleepingClock } from '../sleeping-clock.js';
import { exportFrom } from './export-from.js';
import { row } from './moving-views.js';
import { storedDays } from './stored-days.js';

/** An answer to all requests about a day, and its recorded state then. */
type Answer = readonly [
  name: string,
  outcome: 'failed' | 'final' | 'inconsistent',
  answer: (response: ServerResponse, url: URL) => unknown,
];

const ROWS = [row('/a', 300, 20), row('/b', 40), row('/c', 5, 7)];
const PAGE = { totals: sumCounts(ROWS), views: ROWS, hasMore: false };
const WHOLE = JSON.stringify(PAGE);
const HTML = '<!doctype html><title>Sorry</title><h1>It does not work</h1>';

const refusal = (status: number, retryAfter?: string): Answer => {
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return [
    `${status}, Retry-After: ${retryAfter}`,
    'failed',
    (response) => reply(response, status, { error: 'no', details: { day: 'too old' } }, headers),
  ];
};
const body = (name: string, content: string | Buffer | object, outcome: Answer[1] = 'failed'): Answer => [
  name,
  outcome,
  (response) =>
    response.end(typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content)),
];
const many = (count: number) => Array.from({ length: count }, (_, index) => row(`/page-${index}`, 1));
const totalsOf = (human: number) => ({ human, ai: 0, total: human });

// What each status, header and cut-off body means is in test/api.
const ANSWERS: readonly Answer[] = [
  ...[301, 304, 400, 401, 402, 403, 404, 408, 410, 422, 500, 503, 599].map((status) => refusal(status)),
  ...['0', 'soon', '3600', 'Fri, 18 Nov 2050 05:00:00 GMT'].map((wait) => refusal(503, wait)),
  // A pause that the server requests applies to all days: the day itself has failed once each of them had its turn.
  ...[undefined, '0', '60', '99999999999'].map((wait) => refusal(429, wait)),
  ...['', 'null', '[]', '{}', HTML, WHOLE.slice(0, 60), WHOLE + WHOLE].map((text) =>
    body(`200 ${text.slice(0, 40)}`, text),
  ),
  body('UTF-16', Buffer.from(WHOLE, 'utf16le')),
  body('JSON nested too deeply', '['.repeat(200_000)),
  body('17 MB', Buffer.alloc(17_000_000, ' ')),
  ...[2 ** 50, 9_007_199_254_740_000, 1e300].flatMap((views) => {
    const [huge, totals] = [row('/a', views), totalsOf(views)];
    return [
      body(`${views} views of a page`, { totals, views: [huge], hasMore: false }),
      body(`${views} views in the totals only`, { ...PAGE, totals }),
    ];
  }),
  body('pages that add up to too many views', {
    ...PAGE,
    views: ['/a', '/b'].map((path) => row(path, 2 ** 49)),
  }),
  body('unknown fields', { ...PAGE, next: 'x', totals: { ...PAGE.totals, bots: 1 } }, 'final'),
  body('a prototype as a field', WHOLE.replace('{', '{"__proto__":{"hasMore":true},'), 'final'),
  body('a path twice', { ...PAGE, views: [row('/a', 100), row('/a', 200, 20), ...ROWS.slice(1)] }, 'final'),
  body('few views without a page', { ...PAGE, views: ROWS.slice(0, 2) }, 'final'),
  body('many views without a page', { ...PAGE, views: ROWS.slice(1) }, 'inconsistent'),
  ...[null, { path: null, human: 3, ai: 0, total: 3 }, { path: '/d', human: -1, ai: 0, total: -1 }].map(
    (bad) =>
      body(`the row ${JSON.stringify(bad)} among others`, { ...PAGE, views: [...ROWS, bad] }, 'inconsistent'),
  ),
  body('rows without totals', { ...PAGE, totals: totalsOf(0) }, 'inconsistent'),
  body(
    'a total that is not human + ai',
    {
      ...{ ...PAGE, totals: { ...totalsOf(300), total: 1 } },
      views: [{ path: '/a', human: 300, ai: 0, total: 1 }],
    },
    'final',
  ),
  body('400 rows at once', { totals: totalsOf(400), views: many(400), hasMore: false }, 'final'),
  body('an empty page with more to follow', { ...PAGE, views: [], hasMore: true }, 'inconsistent'),
  body('a short page with more to follow', { ...PAGE, hasMore: true }, 'final'),
  body('a whole page for ever', { totals: totalsOf(250), views: many(250), hasMore: true }, 'final'),
  body('the same page for ever', { totals: totalsOf(251), views: many(250), hasMore: true }),
  [
    'pages without end',
    'failed',
    (response, url) => {
      const offset = Number(url.searchParams.get('offset'));
      const views = many(250).map((one) => ({ ...one, path: `${one.path}-${offset}` }));
      // Instead of a million pages, every tenth page repeats the first.
      const rows = offset < 2_500 ? views : many(250);
      reply(response, 200, { totals: totalsOf(9_000), views: rows, hasMore: offset < 5_000 });
    },
  ],
  ['no answer at all', 'failed', () => undefined],
  ['not HTTP', 'failed', (response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n')],
  [
    'hints before the answer',
    'final',
    (response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.end(WHOLE);
    },
  ],
];

const TEN_DAYS = daysIn({ first: day('2026-11-01'), last: day('2026-11-10') });

describe('ten days, one of which is always answered with', () => {
  let history: HistoryStore;
  let opened: OpenState;
  let server: TestServer;
  beforeAll(async () => {
    opened = await openTestState(undefined, { isOfFile: true });
    const historyFile = join(opened.dataDir, 'history.duckdb');
    history = openStore({ historyFile }, opened.state, opened.worker, {});
    // Each answer has its own project and its own day.
    server = await serve(({ url }, response) => {
      const index = Number(url.pathname.split('/')[3]);
      const answer = ANSWERS[index]?.[2];
      if (url.searchParams.get('dateFrom') === badDay(index)) void answer?.(response, url);
      else reply(response, 200, PAGE);
    });
  });
  afterAll(async () => {
    await history.close();
    await opened.close();
  });

  const badDay = (index: number) => addDays(day('2026-11-01'), index % TEN_DAYS.length);

  async function exportAll(project: string): Promise<void> {
    const { state } = opened;
    const clock = sleepingClock();
    const client = openClient(server.baseUrl, {
      projectId: project,
      now: clock.now,
      pace: paceOn(state, clock, { bucket: project, cap: 'unlimited' }),
      retries: { retries: 1, minDelayMs: 1, maxDelayMs: 5 },
      limits: { responseTimeoutMs: 1_000 },
    });
    const task = { history, state, client, project, inTurn: pLimit(4), now: clock.now };
    const { stopped } = await exportFrom({ ...task, from: '2026-11-01', to: '2026-11-10' });
    expect(stopped).toBeUndefined();
  }

  it.each(ANSWERS.map(([name, outcome], index) => ({ name, outcome, index })))(
    '$name: the other nine are loaded',
    async ({ outcome, index }) => {
      const project = String(index);
      await exportAll(project);
      const records = await readDayRecords({ history, state: opened.state }, project);
      const bad = badDay(index);
      for (const other of TEN_DAYS.filter((one) => one !== bad))
        expect(records.get(other), other).toMatchObject({ state: 'final', pages: ROWS.length });
      expect(records.get(bad)?.state).toBe(outcome);
    },
  );

  it('anything wrong: the record says what', async () => {
    const failed = (await storedDays(history)).filter(({ state }) => state !== 'final');
    expect(failed.length).toBeGreaterThan(30);
    for (const { failure } of failed) expect(failure).toMatch(/\w{3}/);
  });
});
