import { describe, expect, it, test } from 'vitest';
import { RefusedError } from '../../src/api/errors.js';
import { addDays, type Day, day, daysBetween } from '../../src/day.js';
import { type ExportRange, type RangeRequest, resolveRange } from '../../src/export/range.js';
import { KEPT_FROM } from '../../src/export/retention.js';
import { readFact } from '../../src/state/platform.js';
import { openClient } from '../api/open-client.js';
import { stateBeside } from '../open-state.js';
import { newStore } from '../open-history.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { reply, serve } from '../serve.js';

/** One request, and one for each halving of the twelve years in which a history may begin. */
const MOST_REQUESTS = 14;

const OPERATION = { name: 'read page views', method: 'GET', url: 'http://platform.test' } as const;

/** The range of an export without bounds, with the search for its first day. */
const find = (request: Omit<RangeRequest, 'start'>): Promise<ExportRange | undefined> =>
  resolveRange({ ...request, start: 'auto' });

const FIRST = day('2024-03-05');
const YESTERDAY = day('2026-11-17');
const DAY_MS = 86_400_000;

interface Limits {
  /** Longer ranges are refused. */
  readonly longestDays?: number;
  /** Ranges that begin before are refused. */
  readonly oldest?: Day;
  readonly first?: Day;
  readonly status?: number;
}

/** A platform with a view on every day since `first`, which refuses some ranges. */
async function limitedPlatform({ longestDays = Infinity, oldest, first = FIRST, status = 400 }: Limits) {
  const asked: { first: Day; last: Day }[] = [];
  const limits = { longestDays, oldest, first, status };
  const server = await serve(({ url }, response) => {
    const from = day(url.searchParams.get('dateFrom') ?? '');
    const last = addDays(day(url.searchParams.get('dateTo') ?? ''), -1);
    asked.push({ first: from, last });
    const isTooLong = daysBetween(from, last) + 1 > limits.longestDays;
    if (isTooLong || (limits.oldest !== undefined && from < limits.oldest)) {
      reply(response, limits.status, { error: 'this range is not possible' });
      return;
    }
    const human = Math.max(0, daysBetween(from > limits.first ? from : limits.first, last) + 1);
    reply(response, 200, { totals: { human, ai: 0, total: human }, views: [], hasMore: false });
  });
  const client = openClient(server.baseUrl, { retries: { retries: 1, minDelayMs: 1, maxDelayMs: 1 } });
  const history = await newStore();
  const { state } = await stateBeside(history);
  const request = { history, state, client, project: 'prj_1', now: () => NOW };
  return { request, asked, limits };
}

describe('where a history begins', () => {
  it.each(['2026-11-17', '2026-11-02', '2025-12-31', FIRST])(
    'is found at %s with one request for each halving, and remembered',
    async (first) => {
      const { request, asked } = await limitedPlatform({ first: day(first) });
      expect(await find(request)).toEqual({ first, last: YESTERDAY });
      expect(asked.length).toBeLessThanOrEqual(MOST_REQUESTS);
      const before = asked.length;
      expect(await find(request)).toMatchObject({ first });
      expect(asked).toHaveLength(before);
    },
  );

  it.each([1, 2, 5])(
    'is not decided by a single refusal, here of request %i into the past',
    async (number) => {
      const { request, asked } = await limitedPlatform({ first: day('2025-12-31') });
      let searched = 0;
      const views: RangeRequest['client']['views'] = (query, options) => {
        if (query.dateTo < '2026-11-18' && ++searched === number)
          return Promise.reject(new RefusedError(OPERATION, 400, 'the server answered 400.'));
        return request.client.views(query, options);
      };
      const found = await find({ ...request, client: { views } });
      expect(found).toEqual({ first: '2025-12-31', last: YESTERDAY });
      expect(asked.length).toBeLessThan(2 * MOST_REQUESTS);
      expect(readFact(request.state, request.project, KEPT_FROM, NOW)).toBeUndefined();
    },
  );

  it('is found over several exports, if each may send a single request', async () => {
    const { request, asked } = await limitedPlatform({ first: day('2025-12-31') });
    let exports = 0;
    for (let found; found === undefined; exports++) {
      let left = 1;
      const views: RangeRequest['client']['views'] = (query, options) =>
        left-- > 0 ? request.client.views(query, options) : Promise.reject(new Error('paused'));
      found = await find({ ...request, client: { views } }).catch(() => undefined);
    }
    expect(exports).toBeGreaterThan(10);
    expect(asked.length).toBeLessThanOrEqual(MOST_REQUESTS);
  });

  it('is unknown while the platform has no views, and searched for again next time', async () => {
    const { request, asked } = await limitedPlatform({ first: day('2026-11-18') });
    for (const requests of [1, 2]) {
      expect(await find(request)).toBeUndefined();
      expect(asked).toHaveLength(requests);
    }
  });

  it('is not searched for when it is configured or given; the end is yesterday in UTC', async () => {
    const { request, asked } = await limitedPlatform({});
    const range = { first: '2026-11-05', last: YESTERDAY };
    expect(await resolveRange({ ...request, start: day('2026-11-05') })).toEqual(range);
    const until = { start: day('2026-11-05'), to: day('2026-12-31') };
    expect(await resolveRange({ ...request, ...until })).toEqual(range);
    const given = { start: 'auto', from: day('2026-11-06'), to: day('2026-11-08') } as const;
    expect(await resolveRange({ ...request, ...given })).toEqual({ first: '2026-11-06', last: '2026-11-08' });
    expect(asked).toHaveLength(0);
  });
});

describe('on a platform that refuses long or old ranges, the first day', () => {
  it.each([
    ['is found with ranges of at most 366 days', { longestDays: 366 }, FIRST],
    ['is found with ranges of at most 90 days', { longestDays: 90 }, FIRST],
    ['is found with single days only', { longestDays: 1, first: day('2026-09-01') }, day('2026-09-01')],
    ['is the oldest that is not refused', { oldest: day('2025-05-20') }, day('2025-05-20')],
    ['is found after those refused', { oldest: day('2023-01-01') }, FIRST],
    ['is found where long ranges time out', { longestDays: 100, status: 504 }, FIRST],
    [
      'is the oldest not refused, with short ranges',
      { longestDays: 31, oldest: day('2026-08-20'), status: 422 },
      day('2026-08-20'),
    ],
  ] as const)('%s', async (_, limits, first) => {
    const { request, asked } = await limitedPlatform(limits);
    expect(await find(request)).toMatchObject({ first, last: YESTERDAY });
    expect(asked.length).toBeLessThanOrEqual(30);
    const before = asked.length;
    expect(await find(request)).toMatchObject({ first });
    expect(asked).toHaveLength(before);
  });

  it('must be set as history.start if it cannot be found', async () => {
    const { request } = await limitedPlatform({ longestDays: 31, first: day('2026-11-18') });
    await expect(find(request)).rejects.toThrow(/refuses ranges of more than 31 days.*Set history\.start/s);
  });

  it.each([400, 401, 402, 403])('is not searched for if even one day is refused with %i', async (status) => {
    const { request, asked } = await limitedPlatform({ longestDays: 0, status });
    await expect(find(request)).rejects.toThrow(RefusedError);
    expect(asked.length).toBeLessThanOrEqual(4);
  });
});

describe('a first day that the user gives', () => {
  it('takes no request if nothing is known yet', async () => {
    const { request, asked } = await limitedPlatform({});
    for (const from of [day('2026-11-10'), day('2025-01-01')])
      expect(await resolveRange({ ...request, start: 'auto', from })).toEqual({
        first: from,
        last: YESTERDAY,
      });
    expect(asked).toHaveLength(0);
  });

  it('before the remembered one is loaded if it now has views', async () => {
    const { request, asked, limits } = await limitedPlatform({});
    await find(request);
    const before = asked.length;
    limits.first = day('2023-01-01');
    const from = day('2023-06-01');
    expect(await resolveRange({ ...request, start: 'auto', from })).toEqual({ first: from, last: YESTERDAY });
    expect(asked.slice(before)).toEqual([{ first: from, last: addDays(FIRST, -1) }]);
    expect(await find(request)).toMatchObject({ first: '2023-01-01' });
  });

  it.each([
    ['has no views of', {}],
    ['refuses', { oldest: FIRST }],
  ])('before the remembered one is not loaded if the platform %s it, with a note', async (why, limits) => {
    const { request, asked } = await limitedPlatform(limits);
    await find(request);
    const before = asked.length;
    const range = await resolveRange({ ...request, start: 'auto', from: day('2024-01-01') });
    expect(range).toMatchObject({
      first: FIRST,
      note: expect.stringContaining(`the platform ${why} `) as string,
    });
    expect(asked.slice(before)).toHaveLength(1);
  });
});

test('a remembered first day is checked with one request every 30 days', async () => {
  const { request, asked, limits } = await limitedPlatform({});
  const at = async (days: number) => {
    const before = asked.length;
    const now = () => new Date(NOW.getTime() + days * DAY_MS);
    const range = await find({ ...request, now });
    return { first: range?.first, requests: asked.length - before };
  };
  expect(await at(0)).toMatchObject({ first: FIRST });
  expect(await at(29)).toEqual({ first: FIRST, requests: 0 });
  expect(await at(31)).toEqual({ first: FIRST, requests: 1 });
  expect(await at(60)).toEqual({ first: FIRST, requests: 0 });
  limits.first = day('2023-12-24');
  expect(await at(62)).toMatchObject({ first: '2023-12-24' });
});
