import type { ServerResponse } from 'node:http';
import { addHours } from 'date-fns';
import pLimit from 'p-limit';
import { describe, expect, it } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { openClient } from '../api/open-client.js';
import { closeNow, newStore, rowsOf as rowsIn } from '../open-history.js';
import { NOW, openSandbox, type OpenSandbox } from '../sandbox/open-sandbox.js';
import { reply, serve } from '../serve.js';
import { exportFrom } from './export-from.js';
import { sumCounts } from '../../src/export/totals.js';
import { byPath, movingViews, row, type Rows, rowsOf, totalsOf } from './moving-views.js';
import { expectWhole, statesOf, storedDays, storedRows, storedTotals } from './stored-days.js';

const ROWS: Rows = { '/a': [3, 1] };
const TEN_DAYS = { from: '2026-11-01', to: '2026-11-10' };
const PAGE = { totals: totalsOf(ROWS), views: rowsOf(ROWS), hasMore: false };
const RETRY_ONCE = { retries: 1, minDelayMs: 1, maxDelayMs: 10 };

/** A client of a sandbox of two pages a day, and a history to export it into. */
async function setUp() {
  const opened = await openSandbox();
  const { sandbox, clock } = opened;
  const client = openClient(sandbox.baseUrl, {
    projectId: sandbox.projectId,
    apiKey: sandbox.apiKey,
    now: clock.now,
    retries: RETRY_ONCE,
    limits: { responseTimeoutMs: 5_000 },
  });
  return { ...opened, task: { client, now: clock.now, history: await newStore() } };
}

const totalsFrom = async ({ views }: OpenSandbox, from: string, to: string) =>
  (await views(`dateFrom=${from}&dateTo=${addDays(day(to), 1)}&limit=1`)).totals;

const requestsFor = ({ sandbox }: OpenSandbox, date: string): number =>
  sandbox.inspect().requests.recent.filter(({ url }) => url.includes(`dateFrom=${date}`)).length;

const totalRequests = ({ sandbox }: OpenSandbox): number => sandbox.inspect().requests.recent.length;

const restatements = (history: Awaited<ReturnType<typeof newStore>>) =>
  rowsIn(history, 'SELECT * EXCLUDE (project, restated_at) FROM restatements ORDER BY day');

it('every loaded day adds up, and the history matches what the server reports; nothing warns on the terminal', async () => {
  const opened = await setUp();
  const { history } = opened.task;
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  const range = { from: '2026-10-01', to: '2026-11-17' };
  const { results, stopped } = await exportFrom({ ...opened.task, ...range, inTurn: pLimit(32) });
  process.off('warning', warned);
  expect([stopped, results.length, warnings]).toEqual([undefined, 48, []]);
  await expectWhole(history);
  expect(await storedTotals(history)).toEqual(await totalsFrom(opened, range.from, range.to));
  for (const date of [range.from, range.to]) {
    const stored = (await storedDays(history)).find((row) => row.day === date);
    expect(stored).toMatchObject(await totalsFrom(opened, date, date));
    expect(stored?.pages).toBeGreaterThan(250);
  }
});

it('days that have not settled are provisional, read again until they have settled, then final and never requested again', async () => {
  const opened = await setUp();
  const { history } = opened.task;
  const range = { from: '2026-11-12', to: '2026-11-17' };
  await exportFrom({ ...opened.task, ...range });
  expect(Object.values(await statesOf(history))).toEqual([
    ...['final', 'final', 'final', 'provisional', 'provisional', 'provisional'],
  ]);
  const before = await storedDays(history);

  opened.clock.advance(4 * 86_400);
  const { results } = await exportFrom({ ...opened.task, ...range });
  expect(results.map((result) => result.day).sort()).toEqual(['2026-11-15', '2026-11-16', '2026-11-17']);
  expect(new Set(Object.values(await statesOf(history)))).toEqual(new Set(['final']));
  await expectWhole(history);
  const after = await storedDays(history);
  const changed = before.flatMap(({ day, human, ai, total }, index) => {
    const now = after[index];
    if (total === now?.total) return [];
    const were = { human_before: human, ai_before: ai, total_before: total };
    return { day, ...were, human_after: now?.human, ai_after: now?.ai, total_after: now?.total };
  });
  expect(changed.length).toBeGreaterThan(0);
  expect(await restatements(history)).toMatchObject(changed);

  const asked = totalRequests(opened);
  expect((await exportFrom({ ...opened.task, ...range })).results).toEqual([]);
  expect(totalRequests(opened)).toBe(asked);
});

it('paths that UTF-8 cannot encode stay distinct, even from paths that look like their escapes', async () => {
  const paths = ['/\ud800', '/\ud801', '/\udc00\ud800', '/\\\ud800', '/🦆', '/\ufffd', '/a\\b'];
  const spelled = ['/\\ud800', '/\\u005cud800', '/\\u005c', '/\\u005cu005cud800', '/\\\\ud800'];
  const all = [...paths, ...spelled];
  const views = all.map((path, index) => row(path, index, 1));
  const { baseUrl } = await serve((_, response) =>
    reply(response, 200, { totals: sumCounts(views), views, hasMore: false }),
  );
  const history = await newStore();
  const client = openClient(baseUrl);
  const day = '2026-11-16';
  expect((await exportFrom({ history, client, from: day, to: day })).stopped).toBeUndefined();
  const stored = await storedRows(history, day);
  expect(stored).toHaveLength(all.length);
  expect(new Set(stored.map(({ path }) => path)).size).toBe(all.length);
  const human = Object.fromEntries(stored.map((row) => [row.path, row.human]));
  expect(human).toMatchObject({ '/\\ud800': 0, '/\\ud801': 1, '/🦆': 4, '/a\\b': 6, '/\\u005cud800': 7 });
});

describe('a day that is read again', () => {
  const DAY = '2026-11-16';
  const CHECKED = expect.stringMatching(/^2026-11-18/) as string;

  it.each<[what: string, first: Rows, second: Rows, change: object | undefined]>([
    [
      'is unchanged, in another order',
      { '/a': [1, 2], '/b': [3, 0] },
      { '/b': [3, 0], '/a': [1, 2] },
      undefined,
    ],
    [
      'has changed',
      { '/a': [1, 2], '/b': [3, 0], '/c': [1, 1] },
      { '/a': [2, 2], '/d': [9, 9], '/c': [1, 1] },
      {
        ...{ human_before: 5, human_after: 12, ai_before: 3, ai_after: 12, total_before: 8, total_after: 24 },
        ...{ day: DAY, pages_changed: 3, checked_before: CHECKED },
      },
    ],
    [
      'has moved views between pages',
      { '/a': [1, 0], '/b': [2, 0] },
      { '/a': [2, 0], '/b': [1, 0] },
      { total_before: 3, total_after: 3, pages_changed: 2 },
    ],
    ['is empty now', { '/a': [1, 2] }, {}, { total_before: 3, total_after: 0, pages_changed: 1 }],
  ])(
    'and %s is what was read last, as a whole, and each change is recorded',
    async (_, first, second, change) => {
      const { client } = movingViews([rowsOf(first), rowsOf(second)]);
      const history = await newStore();
      await exportFrom({ history, client, from: DAY, to: DAY });
      const { results } = await exportFrom({ history, client, from: DAY, to: DAY });
      const rows = Object.keys(second).length;
      expect(results).toMatchObject([{ outcome: change === undefined ? 'unchanged' : 'restated', rows }]);
      expect(await storedRows(history, DAY)).toEqual(byPath(rowsOf(second)));
      expect(await storedDays(history)).toMatchObject([{ state: 'provisional', pages: rows }]);
      expect(await restatements(history)).toMatchObject(change === undefined ? [] : [change]);
      await expectWhole(history);
    },
  );

  it('and is empty now, although it had settled, keeps what was stored: the platform forgot it', async () => {
    const { client } = movingViews([rowsOf({ '/a': [1, 2] }), []]);
    const history = await newStore();
    await exportFrom({ history, client, from: DAY, to: DAY });
    const later = () => new Date('2026-12-24T12:00:00Z');
    const { results } = await exportFrom({ history, client, from: DAY, to: DAY, now: later });
    expect(results).toMatchObject([{ day: DAY, outcome: 'forgotten', state: 'final' }]);
    expect(await storedRows(history, DAY)).toMatchObject([{ path: '/a', human: 1, ai: 2 }]);
    expect(await storedDays(history)).toMatchObject([{ day: DAY, state: 'final', total: 3, pages: 1 }]);
    expect(await restatements(history)).toEqual([]);
    expect((await exportFrom({ history, client, from: DAY, to: DAY, now: later })).results).toEqual([]);
    await expectWhole(history);
  });

  it('leaves the same day of another project alone', async () => {
    const history = await newStore();
    const load = (project: string, rows: Rows) => {
      const { client } = movingViews([rowsOf(rows)]);
      return exportFrom({ history, project, client, from: DAY, to: DAY });
    };
    await load('prj_1', { '/a': [1, 0] });
    await load('prj_2', { '/b': [5, 0] });
    await load('prj_1', { '/c': [2, 0] });
    expect((await storedRows(history, DAY)).map(({ path }) => path)).toEqual(['/b', '/c']);
    await expectWhole(history);
  });
});

describe('a day that cannot be loaded', () => {
  it('is recorded with the reason, and keeps its stored rows', async () => {
    const { sandbox, task } = await setUp();
    const { history } = task;
    const range = { from: '2026-11-16', to: '2026-11-17' };
    await exportFrom({ ...task, ...range });
    const before = await storedRows(history, '2026-11-17');
    expect(before.length).toBeGreaterThan(250);
    sandbox.setFaults([{ on: 'views', kind: 'cut-body' }]);
    // A provisional day would be recognized by its first page alone.
    const { results } = await exportFrom({ ...task, ...range, reload: true });
    expect(results.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
    expect(await storedRows(history, '2026-11-17')).toEqual(before);
    const failed = await storedDays(history);
    for (const { state, failure } of failed) {
      expect(state).toBe('failed');
      expect(failure).toMatch(/\w+/);
    }
    await expectWhole(history);

    sandbox.setFaults([]);
    const again = await exportFrom({ ...task, ...range });
    expect(again.results.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged']);
    expect((await storedDays(history)).map(({ failure }) => failure)).toEqual([null, null]);
  });

  it('stops the export if it is the fifth in a row and any other day fails too; days not reached are unchanged', async () => {
    const opened = await setUp();
    opened.sandbox.setFaults([{ on: 'views', kind: 'html', after: 2 }]);
    const { results, stopped } = await exportFrom({ ...opened.task, ...TEN_DAYS, inTurn: pLimit(1) });
    expect(results.map(({ outcome }) => outcome)).toEqual(['added', ...Array<string>(5).fill('failed')]);
    expect(stopped).toBeInstanceOf(Error);
    expect(Object.keys(await statesOf(opened.task.history))).toHaveLength(6);
    expect(requestsFor(opened, '2026-11-04')).toBe(0);
  });

  it('does not stop the export after four failures, a success and four more failures', async () => {
    const { sandbox, task } = await setUp();
    const four = { on: 'views', kind: 'html', times: 4 } as const;
    // A day has two pages.
    sandbox.setFaults([four, { ...four, after: 6 }]);
    const { results, stopped } = await exportFrom({ ...task, ...TEN_DAYS, inTurn: pLimit(1) });
    expect(results.filter(({ outcome }) => outcome === 'failed')).toHaveLength(8);
    expect([results.length, stopped]).toEqual([10, undefined]);
  });

  it('is not recorded as failed because of another: a day in progress when the export stops is unchanged', async () => {
    let held = 0;
    const server = await serve(({ url }, response) => {
      // One day is kept in progress; all others fail.
      if (url.searchParams.get('dateFrom') === '2026-11-09') held++;
      else reply(response, 500, { error: 'down' });
    });
    const client = openClient(server.baseUrl, { retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 } });
    const history = await newStore();
    const { stopped } = await exportFrom({ history, client, ...TEN_DAYS, inTurn: pLimit(4) });
    expect(held).toBe(1);
    expect(stopped).toBeInstanceOf(Error);
    const days = await storedDays(history);
    expect(days.map((row) => row.day)).not.toContain('2026-11-09');
    for (const { day: date, failure } of days) expect(failure).toContain(`dateFrom=${date}`);
  });
});

it('a long stretch of days that the platform refuses delays no other day', async () => {
  const server = await serve(({ url }, response) => {
    const date = url.searchParams.get('dateFrom') ?? '';
    const isRefused = date > '2026-10-15' && date < '2026-11-08';
    reply(response, isRefused ? 400 : 200, isRefused ? { error: 'not this day' } : PAGE);
  });
  const client = openClient(server.baseUrl, { retries: RETRY_ONCE });
  const history = await newStore();
  const range = { ...TEN_DAYS, from: '2026-10-01' };
  const { stopped } = await exportFrom({ history, client, ...range, inTurn: pLimit(1) });
  expect(stopped).toBeUndefined();
  const states = Object.values(await statesOf(history));
  expect(states.filter((state) => state === 'final')).toHaveLength(18);
  expect(states.filter((state) => state === 'failed')).toHaveLength(23);
});

it.each([
  ['refused', (response: ServerResponse) => reply(response, 400, { error: 'too long' }), undefined],
  ['cut off', (response: ServerResponse) => response.socket?.resetAndDestroy(), 'connection-lost'],
])(
  'a nightly check that the platform does not answer because it is %s does not delay other days',
  async (_, refuse, reason) => {
    const server = await serve(({ url }, response) => {
      const [from, to] = ['dateFrom', 'dateTo'].map((name) => day(url.searchParams.get(name) ?? ''));
      if (from !== undefined && to === addDays(from, 1)) reply(response, 200, PAGE);
      else refuse(response);
    });
    const client = openClient(server.baseUrl, { retries: RETRY_ONCE });
    const history = await newStore();
    await exportFrom({ history, client, from: '2026-10-20', to: '2026-11-17' });
    const now = () => addHours(NOW, 24);
    const { stopped } = await exportFrom({ history, client, from: '2026-10-10', to: '2026-11-17', now });
    expect(stopped).toEqual(reason === undefined ? undefined : expect.objectContaining({ reason }));
    expect(Object.keys(await statesOf(history))).toHaveLength(39);
  },
);

describe('a failure that would affect every other day', () => {
  it.each([
    ['a refused key', { kind: 'status', status: 401 }],
    ['an unknown project', { kind: 'status', status: 400 }],
    ['a rate limit', { kind: 'rate-limit', seconds: 30 }],
    ['a rate limit without a time', { kind: 'rate-limit', retryAfter: 'none', body: 'text' }],
  ] as const)('stops the export at once and changes nothing: %s', async (_, fault) => {
    const opened = await setUp();
    const { sandbox, task } = opened;
    await exportFrom({ ...task, from: '2026-11-15', to: '2026-11-17' });
    const before = [await storedDays(task.history), await storedTotals(task.history)];
    const asked = totalRequests(opened);
    sandbox.setFaults([{ on: 'views', ...fault }]);
    const range = { from: '2026-10-01', to: '2026-11-17' };
    const { results, stopped } = await exportFrom({ ...task, ...range, inTurn: pLimit(1) });
    expect(results).toEqual([]);
    expect(stopped).toMatchObject({ exitCode: fault.kind === 'status' ? 1 : 75 });
    // Each request is repeated once; a second one checks whether the project or only the day is refused.
    expect(totalRequests(opened) - asked).toBeLessThanOrEqual(4);
    expect([await storedDays(task.history), await storedTotals(task.history)]).toEqual(before);
  });
});

it('an interruption leaves complete days, and the next export loads the rest', async () => {
  const opened = await setUp();
  const { task } = opened;
  const abort = new AbortController();
  const reason = new Error('interrupted');
  let days = 0;
  const { stopped, results } = await exportFrom({
    ...task,
    from: '2026-10-20',
    to: '2026-11-17',
    // With more, a busy machine may read all days before it stores the third.
    inTurn: pLimit(1),
    signal: abort.signal,
    onDay: () => {
      if (++days === 3) abort.abort(reason);
    },
  });
  expect(stopped).toBe(reason);
  expect(results.length).toBeLessThan(29);
  expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  await expectWhole(task.history);

  const path = task.history.path;
  await closeNow(task.history);
  const history = await newStore(path);
  await exportFrom({ ...task, history, from: '2026-10-20', to: '2026-11-17' });
  await expectWhole(history);
  expect(await storedTotals(history)).toEqual(await totalsFrom(opened, '2026-10-20', '2026-11-17'));
});

describe('rows that move while a day is read', () => {
  /** The rows of a day as the sandbox serves it while nothing moves. */
  const truth = async ({ views }: OpenSandbox, date: string) => {
    const range = `dateFrom=${date}&dateTo=${addDays(day(date), 1)}&limit=250`;
    const pages = [await views(range), await views(`${range}&offset=250`)];
    return pages.flatMap((page) => page.views).sort((left, right) => (left.path < right.path ? -1 : 1));
  };

  it('always: the day is marked, and read again until it is right', async () => {
    const opened = await setUp();
    const { sandbox, task } = opened;
    sandbox.setFaults([{ on: 'views', kind: 'order-moves' }]);
    const range = { from: '2026-11-09', to: '2026-11-10' };
    await exportFrom({ ...task, ...range });
    expect(await storedDays(task.history)).toMatchObject([
      { state: 'inconsistent', failure: expect.stringContaining('moved') as string },
      { state: 'inconsistent' },
    ]);
    await expectWhole(task.history);
    sandbox.setFaults([]);
    opened.clock.advance(86_400);
    await exportFrom({ ...task, ...range });
    expect(new Set(Object.values(await statesOf(task.history)))).toEqual(new Set(['final']));
    expect(await storedRows(task.history, '2026-11-10')).toEqual(await truth(opened, '2026-11-10'));
  });

  it.each([
    ['few', 2, { state: 'final', unattributed_total: 2, failure: null }],
    ['many', 300, { state: 'inconsistent', failure: expect.stringContaining('differ by 42.9%') as string }],
  ])('%s views that no page has: a settled day is stored with its rows', async (_, missing, stored) => {
    const rows = rowsOf({ '/a': [300, 100] });
    const totals = { human: 300 + missing, ai: 100, total: 400 + missing };
    const history = await newStore();
    const { client } = movingViews([{ rows, totals }]);
    await exportFrom({ history, client, from: '2026-11-10', to: '2026-11-10' });
    expect(await storedDays(history)).toMatchObject([{ ...totals, ...stored }]);
    await expectWhole(history);
  });
});
