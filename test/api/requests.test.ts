import { describe, expect, it } from 'vitest';
import {
  type DayPageSize,
  DOCUMENTED_SIZE,
  pageSizeOfDay,
  ShownPageSize,
} from '../../src/export/page-size.js';
import { viewsPages } from '../../src/export/pages.js';
import { PagingError } from '../../src/api/errors.js';
import type { ViewsResponse } from '../../src/api/schema.js';
import { reply } from '../serve.js';
import { clientOf, errorOf, JOB, KEY, NO_ROWS, openClient, PAGE } from './open-client.js';
import { ATTEMPT } from '../attempt.js';

const rows = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ path: `/${index}`, human: 1, ai: 0, total: 1 }));

describe('the four operations', () => {
  it('are sent as the API documents', async () => {
    const { client, server } = await clientOf(
      (response, _, { url }) => {
        const job = url.pathname.endsWith('message') ? { ...JOB, id: 'job/1?' } : JOB;
        reply(response, 200, url.pathname.endsWith('views') ? NO_ROWS : job);
      },
      { projectId: 'prj/1 ü' },
    );
    await client.views({ ...PAGE, limit: 50, offset: 100 });
    await client.createJob('Improve “/a”', ATTEMPT);
    await client.sendMessage('job/1?', 'Shorter', ATTEMPT);
    await client.job('job_1');
    const prefix = 'prj%2F1%20%C3%BC';
    expect(server.seen.map(({ method, url, body }) => [method, url.pathname + url.search, body])).toEqual([
      ['GET', `/v1/analytics/${prefix}/views?dateFrom=2026-11-10&dateTo=2026-11-11&limit=50&offset=100`, ''],
      ['POST', `/v2/agent/${prefix}/job`, '{"prompt":"Improve “/a”"}'],
      ['POST', `/v2/agent/${prefix}/job/job%2F1%3F/message`, '{"prompt":"Shorter"}'],
      ['GET', `/v2/agent/${prefix}/job/job_1`, ''],
    ]);
    for (const { headers, method } of server.seen) {
      expect(headers.authorization).toBe(`Bearer ${KEY}`);
      expect(headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined);
    }
  });

  it.each([200, 201, 202])('accept %i as success', async (status) => {
    const { client } = await clientOf((response) => reply(response, status, JOB));
    expect(await client.createJob('Improve /a', ATTEMPT)).toMatchObject(JOB);
    expect(await client.job('job_1')).toMatchObject(JOB);
  });

  it('keep the path of a base URL', async () => {
    const { server } = await clientOf((response) => reply(response, 200, NO_ROWS));
    await openClient(`${server.baseUrl}/api`).views(PAGE);
    expect(server.seen[0]?.url.pathname).toBe('/api/v1/analytics/prj_1/views');
  });
});

it('an empty prompt is refused, and nothing is sent', async () => {
  const { client, server } = await clientOf((response) => reply(response, 200, JOB));
  for (const send of [() => client.createJob('', ATTEMPT), () => client.sendMessage('job_1', '', ATTEMPT)])
    expect(await errorOf((async () => send())())).toBeInstanceOf(RangeError);
  expect(server.seen).toHaveLength(0);
});

describe('the pages of a range', () => {
  const RANGE = { dateFrom: PAGE.dateFrom, dateTo: PAGE.dateTo };
  const pagesOf = async (answers: (offset: number) => Pick<ViewsResponse, 'views' | 'hasMore'>) => {
    const offsets: string[] = [];
    const { client } = await clientOf((response, _, { url }) => {
      const { searchParams } = url;
      offsets.push(`${searchParams.get('offset') ?? ''}+${searchParams.get('limit') ?? ''}`);
      reply(response, 200, { ...NO_ROWS, ...answers(Number(searchParams.get('offset'))) });
    });
    return { offsets, pages: viewsPages(client, RANGE, { pageSize: UNKNOWN }) };
  };
  const UNKNOWN = pageSizeOfDay(DOCUMENTED_SIZE);
  const drain = async (pages: AsyncIterable<ViewsResponse & { readonly pageSize: DayPageSize }>) => {
    const sizes: number[] = [];
    let learned = UNKNOWN;
    for await (const { views, pageSize } of pages) {
      sizes.push(views.length);
      learned = pageSize;
    }
    return { sizes, learned };
  };

  it('follow a full page that is said to be the last, in case more rows are needed', async () => {
    const { offsets, pages } = await pagesOf((offset) => ({
      views: rows(offset < 500 ? 250 : 0),
      hasMore: offset === 0,
    }));
    expect((await drain(pages)).sizes).toEqual([250, 250, 0]);
    expect(offsets).toEqual(['0+250', '250+250', '500+250']);
  });

  it('follow the rows that arrive, and are requested in the size of two pages that had a next one', async () => {
    const { offsets, pages } = await pagesOf((offset) => ({
      views: rows(offset < 300 ? 100 : 3),
      hasMore: offset < 300,
    }));
    expect((await drain(pages)).sizes).toEqual([100, 100, 100, 3]);
    expect(offsets).toEqual(['0+250', '100+250', '200+250', '300+100']);
  });

  it.each([
    [422, 'limit must be at most 100', 100, 100],
    [400, 'limit is too large', 60, 50],
    [400, 'exceeds the limit of 30 days of your plan', 0, 250],
    [403, 'limit must be at most 100', 100, 250],
  ])('refused with %i “%s” come in the largest accepted size', async (status, words, accepted, learned) => {
    const { client } = await clientOf((response, _, { url }) => {
      const isAccepted = Number(url.searchParams.get('limit')) <= accepted;
      reply(response, isAccepted ? 200 : status, isAccepted ? NO_ROWS : { error: words });
    });
    const pages = viewsPages(client, RANGE, { pageSize: UNKNOWN });
    const { learned: ofDay } = await drain(pages).catch(() => ({ learned: UNKNOWN }));
    expect(ofDay.rows).toBe(learned);
    const shown = new ShownPageSize(DOCUMENTED_SIZE);
    shown.add(RANGE.dateFrom, ofDay);
    // One day may be an exception, two are not.
    expect(shown.rows).toBe(250);
    shown.add(RANGE.dateTo, ofDay);
    expect(shown.rows).toBe(learned);
  });

  it.each([400, 422])(
    'end before an offset that is refused with %i, which shows nothing about limits',
    async (status) => {
      const { client, server } = await clientOf((response, _, { url }) => {
        const offset = Number(url.searchParams.get('offset'));
        if (offset < 500) reply(response, 200, { ...NO_ROWS, views: rows(250), hasMore: true });
        else reply(response, status, { error: 'limit + offset must be less than 750' });
      });
      const rowsKnown: number[] = [];
      const refused = async () => {
        for await (const { pageSize } of viewsPages(client, RANGE, { pageSize: UNKNOWN }))
          rowsKnown.push(pageSize.rows);
      };
      expect(await errorOf(refused())).toMatchObject({ offset: 500 });
      expect(server.seen).toHaveLength(3);
      expect(rowsKnown).toEqual([250, 250]);
      // A page that an earlier export kept does not show which limit is accepted.
      const kept = new Map([[0, { ...NO_ROWS, views: rows(250), hasMore: true }]]);
      const pages = viewsPages(client, RANGE, { pageSize: UNKNOWN, kept });
      expect(await errorOf(drain(pages))).toMatchObject({ offset: 500 });
    },
  );

  it('are an error if they do not end', async () => {
    let asked = 0;
    const views = () => {
      asked++;
      return Promise.resolve({ ...NO_ROWS, views: rows(250), hasMore: true });
    };
    const pages = viewsPages({ views }, RANGE, { pageSize: UNKNOWN });
    expect(await errorOf(drain(pages))).toBeInstanceOf(PagingError);
    expect(asked).toBeLessThanOrEqual(10_000);
  });
});
