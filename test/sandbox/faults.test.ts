import { describe, expect, it } from 'vitest';
import { viewsResponseSchema } from '../../src/api/schema.js';
import { NOW, openSandbox } from './open-sandbox.js';

const DAY = 'dateFrom=2026-11-10&dateTo=2026-11-11';

describe('faults before the request is handled', () => {
  it('latency: answers, but not at once', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'views', kind: 'latency', delayMs: 60 }]);
    const started = performance.now();
    expect((await get(viewsPath)).status).toBe(200);
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);
  });

  it('latency lets a second fault affect the same request', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([
      { on: 'any', kind: 'latency', delayMs: 1 },
      { on: 'views', kind: 'status', status: 503 },
    ]);
    expect((await get(viewsPath)).status).toBe(503);
  });

  it('rate-limit: 429 with Retry-After in seconds, as a date, or without one; JSON or text', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([
      { on: 'views', kind: 'rate-limit', seconds: 7, times: 1 },
      { on: 'views', kind: 'rate-limit', seconds: 7, retryAfter: 'date', times: 1 },
      { on: 'views', kind: 'rate-limit', retryAfter: 'none', body: 'text', times: 1 },
    ]);
    const [seconds, date, none] = [await get(viewsPath), await get(viewsPath), await get(viewsPath)];
    expect([seconds.status, date.status, none.status]).toEqual([429, 429, 429]);
    expect(seconds.headers.get('Retry-After')).toBe('7');
    expect(await seconds.json()).toEqual({ error: expect.any(String) as string });
    expect(Date.parse(date.headers.get('Retry-After') ?? '')).toBe(NOW.getTime() + 7000);
    expect(none.headers.get('Retry-After')).toBeNull();
    expect(none.headers.get('Content-Type')).toContain('text/plain');
    expect((await get(viewsPath)).status).toBe(200);
  });

  it.each([401, 402, 403, 500, 503])('status %i: answers it, with the words given', async (status) => {
    const { sandbox, post, jobPath } = await openSandbox();
    sandbox.setFaults([{ on: 'create', kind: 'status', status, message: 'Out of credits' }]);
    const response = await post(jobPath, { prompt: 'x' });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: 'Out of credits' });
    expect(sandbox.inspect().jobs).toHaveLength(0);
  });

  it('reset: breaks the connection, and nothing was done', async () => {
    const { sandbox, post, jobPath } = await openSandbox();
    sandbox.setFaults([{ on: 'create', kind: 'reset', times: 1 }]);
    await expect(post(jobPath, { prompt: 'x' })).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(sandbox.inspect()).toMatchObject({ jobs: [], requests: { counts: { create: { none: 1 } } } });
  });

  it('timeout: never answers, and does not delay closing', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'views', kind: 'timeout' }]);
    const answer = get(viewsPath).then(
      () => 'answered',
      () => 'cut off',
    );
    await expect.poll(() => sandbox.inspect().requests.counts.views).toEqual({ none: 1 });
    const started = performance.now();
    await sandbox.close();
    expect(performance.now() - started).toBeLessThan(500);
    expect(await answer).toBe('cut off');
  });
});

describe('faults after the request was handled', () => {
  it('lost-reply: the connection breaks, and the job exists', async () => {
    const { sandbox, post, jobPath } = await openSandbox();
    sandbox.setFaults([{ on: 'create', kind: 'lost-reply' }]);
    await expect(post(jobPath, { prompt: 'x' })).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(sandbox.inspect()).toMatchObject({
      jobs: [{ prompt: 'x' }],
      requests: { counts: { create: { none: 1 } } },
    });
  });

  it('status-after: an error is answered, and the message was taken', async () => {
    const { sandbox, create, post, jobPath } = await openSandbox();
    const { id } = await create();
    sandbox.setFaults([{ on: 'message', kind: 'status-after' }]);
    expect((await post(`${jobPath}/${id}/message`, { prompt: 'more' })).status).toBe(500);
    expect(sandbox.inspect().jobs).toMatchObject([{ messages: [{ prompt: 'more' }] }]);
  });

  it('cut-body: the status is fine, the body is cut off', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'views', kind: 'cut-body', times: 1 }]);
    const response = await get(`${viewsPath}?${DAY}`);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    expect((await get(viewsPath)).status).toBe(200);
  });

  it('html: 200 with a web page', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'any', kind: 'html' }]);
    const response = await get(viewsPath);
    expect([response.status, response.headers.get('Content-Type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(await response.text()).toContain('<!doctype html>');
  });

  it.each(['totals', 'views', 'hasMore', 'path', 'ai'])(
    'missing-field: a reply without %s breaks the contract',
    async (field) => {
      const { sandbox, get, viewsPath } = await openSandbox();
      sandbox.setFaults([{ on: 'views', kind: 'missing-field', field }]);
      const response = await get(`${viewsPath}?${DAY}`);
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(text).not.toContain(`"${field}"`);
      expect(viewsResponseSchema.safeParse(JSON.parse(text)).success).toBe(false);
    },
  );

  it('missing-field: removes a field of a job, too', async () => {
    const { sandbox, create, get, jobPath } = await openSandbox();
    const { id } = await create();
    sandbox.setFaults([{ on: 'job', kind: 'missing-field', field: 'status' }]);
    expect(await (await get(`${jobPath}/${id}`)).json()).not.toHaveProperty('status');
  });

  it('negative-count: the first row counts below zero', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'views', kind: 'negative-count' }]);
    expect(await (await get(`${viewsPath}?${DAY}`)).json()).toMatchObject({ views: { 0: { human: -1 } } });
  });
});

describe('faults in the paging of views', () => {
  it('endless with the last page: always more, the last rows again and again', async () => {
    const { sandbox, views } = await openSandbox();
    const honest = await views(`${DAY}&limit=250&offset=250`);
    sandbox.setFaults([{ on: 'views', kind: 'endless', beyond: 'last-page' }]);
    for (const offset of [250, 500, 5000]) {
      expect(await views(`${DAY}&limit=250&offset=${offset}`)).toEqual({ ...honest, hasMore: true });
    }
  });

  it('endless with nothing: always more, and no rows past the end', async () => {
    const { sandbox, views } = await openSandbox();
    sandbox.setFaults([{ on: 'views', kind: 'endless', beyond: 'nothing' }]);
    expect(await views(`${DAY}&limit=250&offset=500`)).toMatchObject({ views: [], hasMore: true });
  });

  it('counts-move: the second page has other totals than the first', async () => {
    const { sandbox, views } = await openSandbox();
    const honest = await views(`${DAY}&limit=250&offset=250`);
    sandbox.setFaults([{ on: 'views', kind: 'counts-move' }]);
    const [first, second] = [await views(`${DAY}&limit=250`), await views(`${DAY}&limit=250&offset=250`)];
    expect(first.totals).toEqual(honest.totals);
    expect(second.totals.total).toBe(first.totals.total + 1);
    expect(second.views).toEqual(honest.views);
  });

  it('order-moves: one path comes twice, another never, and the totals stay', async () => {
    const { sandbox, views } = await openSandbox();
    const walk = async () => [await views(`${DAY}&limit=250`), await views(`${DAY}&limit=250&offset=250`)];
    const honest = await walk();
    sandbox.setFaults([{ on: 'views', kind: 'order-moves' }]);
    const moved = await walk();
    const paths = (pages: typeof honest) => pages.flatMap(({ views: rows }) => rows.map(({ path }) => path));
    expect(moved.map(({ totals }) => totals)).toEqual(honest.map(({ totals }) => totals));
    expect(paths(moved)).toHaveLength(paths(honest).length);
    expect(new Set(paths(moved)).size).toBe(paths(honest).length - 1);
    expect(moved.at(-1)?.hasMore).toBe(false);
  });
});

describe('targeted faults', () => {
  it('affects only its operation, after the requests let through, as many times as set', async () => {
    const { sandbox, create, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'views', kind: 'status', status: 500, after: 1, times: 2 }]);
    await create();
    const statuses = [];
    for (let request = 0; request < 4; request += 1) statuses.push((await get(viewsPath)).status);
    expect(statuses).toEqual([200, 500, 500, 200]);
  });

  it('ends when the faults are cleared', async () => {
    const { sandbox, get, viewsPath } = await openSandbox();
    sandbox.setFaults([{ on: 'any', kind: 'status', status: 503 }]);
    expect((await get(viewsPath)).status).toBe(503);
    sandbox.setFaults([]);
    expect((await get(viewsPath)).status).toBe(200);
  });
});
