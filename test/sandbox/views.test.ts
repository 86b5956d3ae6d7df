import { describe, expect, it, vi } from 'vitest';
import type { PageViews } from '../../src/api/schema.js';
import { sumCounts } from '../../src/export/totals.js';
import { addDays, day, daysIn } from '../../src/day.js';
import { openSandbox } from './open-sandbox.js';

const WEEK = 'dateFrom=2026-11-02&dateTo=2026-11-09';

describe('the views export', () => {
  it('answers 200 with totals, 50 rows by default and whether there are more', async () => {
    const { get, viewsPath, views } = await openSandbox();
    expect((await get(viewsPath)).status).toBe(200);
    const page = await views(WEEK);
    expect(page.views).toHaveLength(50);
    expect(page.hasMore).toBe(true);
  });

  it('pages through every row once, and the rows add up to the totals of every page', async () => {
    const { views } = await openSandbox();
    const rows: PageViews[] = [];
    for (let offset = 0, hasMore = true; hasMore; offset += 100) {
      const page = await views(`${WEEK}&limit=100&offset=${offset}`);
      rows.push(...page.views);
      hasMore = page.hasMore;
      if (!hasMore) expect(sumCounts(rows)).toEqual(page.totals);
    }
    expect(new Set(rows.map(({ path }) => path)).size).toBe(rows.length);
    expect(rows.every(({ human, ai, total }) => total === human + ai && total > 0)).toBe(true);
  });

  it('has no more after exactly the last row, and nothing past the end', async () => {
    const { views } = await openSandbox({ pages: 20 });
    const all = await views(`${WEEK}&limit=250`);
    const count = all.views.length;
    expect(all.hasMore).toBe(false);
    expect((await views(`${WEEK}&limit=${count}`)).hasMore).toBe(false);
    expect((await views(`${WEEK}&limit=${count - 1}`)).hasMore).toBe(true);
    expect(await views(`${WEEK}&offset=${count}`)).toEqual({ totals: all.totals, views: [], hasMore: false });
  });

  it('excludes dateTo: single days add up to their range', async () => {
    const { views } = await openSandbox();
    const range = await views(WEEK);
    const days = daysIn({ first: day('2026-11-02'), last: day('2026-11-08') });
    const each = await Promise.all(days.map((d) => views(`dateFrom=${d}&dateTo=${addDays(d, 1)}&limit=1`)));
    expect(each.reduce((sum, { totals }) => sum + totals.total, 0)).toBe(range.totals.total);
    expect((await views('dateFrom=2026-11-02&dateTo=2026-11-02')).totals.total).toBe(0);
  });

  it('reads ISO 8601 date-times as the UTC day they are in, wherever the sandbox runs', async () => {
    vi.stubEnv('TZ', 'Pacific/Auckland');
    const { views } = await openSandbox();
    const plain = await views(WEEK);
    for (const query of [
      'dateFrom=2026-11-02T00:00:00Z&dateTo=2026-11-09T00:00:00.000Z',
      'dateFrom=2026-11-02T10:30:00&dateTo=2026-11-08T23:00:00-02:00',
    ])
      expect(await views(query)).toEqual(plain);
  });

  it('reads an open range as everything from the first day until now', async () => {
    const { sandbox, views } = await openSandbox();
    const all = await views('limit=1');
    expect(sandbox.firstDay).toBe('2026-04-20');
    expect(await views(`dateFrom=1970-01-01&dateTo=2999-01-01&limit=1`)).toEqual(all);
    expect((await views(`dateTo=${sandbox.firstDay}`)).totals.total).toBe(0);
    expect((await views('dateFrom=2026-11-19')).totals.total).toBe(0);
    expect((await views('dateFrom=2026-11-18')).totals.total).toBeGreaterThan(0);
  });

  it.each([
    ['dateFrom=yesterday', 'dateFrom'],
    ['dateFrom=2026-02-30', 'dateFrom'],
    ['dateTo=2026-13-01', 'dateTo'],
    ['dateTo=2026-02-30T00:00:00Z', 'dateTo'],
    ['dateFrom=', 'dateFrom'],
    ['dateFrom=2026-11-09&dateTo=2026-11-02', 'dateFrom'],
    ['limit=0', 'limit'],
    ['limit=251', 'limit'],
    ['limit=2.5', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=', 'limit'],
    ['offset=-1', 'offset'],
    ['offset=1e3', 'offset'],
  ])('refuses %s with 400 and names %s', async (query, name) => {
    const { get, viewsPath } = await openSandbox();
    const response = await get(`${viewsPath}?${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: expect.any(String) as string,
      details: [{ message: expect.stringContaining(name) as string }],
    });
  });

  it('allows any number of requests by default, and answers 429 past viewsPerHour until the hour has rolled', async () => {
    const { clock, get, viewsPath } = await openSandbox({ viewsPerHour: 2 });
    expect((await get(viewsPath)).status).toBe(200);
    clock.advance(600);
    expect((await get(viewsPath)).status).toBe(200);
    const refused = await get(viewsPath);
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '3000']);
    clock.advance(3000);
    expect((await get(viewsPath)).status).toBe(200);
    expect((await get(viewsPath)).status).toBe(429);
  });
});
