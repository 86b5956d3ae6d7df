import { describe, expect, test } from 'vitest';
import type { PageViews } from '../../src/api/schema.js';
import { RefusedError } from '../../src/api/errors.js';
import { addDays, type Day, day, daysBetween, daysIn } from '../../src/day.js';
import {
  type DifferingDay,
  findDifferingDays,
  isForgotten,
  type StoredTotals,
  sumCounts,
} from '../../src/export/totals.js';
import { openClient } from '../api/open-client.js';
import { rowsOf, servePlatform } from '../platform.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { withOneMore } from './open-export.js';

const FIRST = day('2025-11-15');
const YEAR = daysIn({ first: FIRST, last: addDays(FIRST, 364) });
const stored: readonly StoredTotals[] = YEAR.map((at) => ({ day: at, ...sumCounts(rowsOf(at, 5)) }));

/** Verifies what is stored against a platform on which these days changed, and counts its requests. */
async function verify(changed: ReadonlyMap<Day, readonly PageViews[]>, days = stored) {
  const platform = await servePlatform({ now: () => NOW, rowsOf: (at) => changed.get(at) ?? rowsOf(at, 5) });
  const client = openClient(platform.baseUrl, { limits: { responseTimeoutMs: 5_000 } });
  const found: DifferingDay[] = [];
  for await (const day of findDifferingDays(client, days)) found.push(day);
  return { found: found.map((one) => one.day), details: found, requests: platform.views.length };
}

const dayAt = (index: number): Day => addDays(FIRST, index);
const changedDays = (...indexes: number[]) =>
  new Map(indexes.map((index) => [dayAt(index), withOneMore(rowsOf(dayAt(index), 5))]));

describe('verifying a year', () => {
  test('takes one request if nothing changed', async () => {
    expect(await verify(new Map())).toMatchObject({ found: [], requests: 1 });
  });

  test.each([0, 1, 182, 183, 200, 363, 364])(
    'finds the one day that changed, number %i, in 1 + ⌈log2 365⌉ requests at most',
    async (index) => {
      const { found, details, requests } = await verify(changedDays(index));
      expect(found).toEqual([dayAt(index)]);
      expect(details[0]?.platform.human).toBe((details[0]?.stored.human ?? 0) + 1);
      expect(requests).toBeLessThanOrEqual(1 + Math.ceil(Math.log2(365)));
    },
  );

  test('finds all of several changed days', async () => {
    const indexes = [3, 4, 90, 250, 364];
    const { found, requests } = await verify(changedDays(...indexes));
    expect(found).toEqual(indexes.map(dayAt));
    expect(requests).toBeLessThanOrEqual(1 + indexes.length * Math.ceil(Math.log2(365)));
  });

  test('sends one request for each run of consecutive days: a gap does not count as a difference', async () => {
    const withGaps = stored.filter((_, index) => index !== 100 && index !== 101 && index !== 200);
    expect(await verify(changedDays(101), withGaps)).toMatchObject({ found: [], requests: 3 });
  });

  test('sends nothing if nothing is stored', async () => {
    expect(await verify(new Map(), [])).toMatchObject({ found: [], requests: 0 });
  });

  test('distinguishes days that the platform forgot from corrected ones, and searches no further for them', async () => {
    const forgotten = YEAR.slice(0, 200);
    const { details, requests } = await verify(new Map(forgotten.map((at) => [at, []])));
    expect(details.map((one) => one.day)).toEqual(forgotten);
    expect(details.every(isForgotten)).toBe(true);
    expect(requests).toBeLessThanOrEqual(1 + 2 * Math.ceil(Math.log2(365)));
  });

  test('misses changes that keep the sums: the documented limit of comparing totals', async () => {
    const rows = rowsOf(dayAt(10), 5);
    const reshuffled = rows.map((row, index) => ({ ...row, path: rows.at(-1 - index)?.path ?? '' }));
    const lessOne = rowsOf(dayAt(21), 5).map((row, index) =>
      index === 0 ? { ...row, human: row.human - 1, total: row.total - 1 } : row,
    );
    const compensating = new Map([...changedDays(20), [dayAt(21), lessOne], [dayAt(10), reshuffled]]);
    expect(await verify(compensating)).toMatchObject({ found: [], requests: 1 });
  });

  test.each([
    ['31 days', (days: number) => days > 31, 0, 31],
    ['more than 3 days, so nothing is compared', (days: number) => days > 3, 365, 127],
  ])('on a platform that refuses ranges of more than %s', async (_, isRefused, uncompared, most) => {
    const platform = await servePlatform({ now: () => NOW, rowsOf: (at) => rowsOf(at, 5) });
    const client = openClient(platform.baseUrl, { limits: { responseTimeoutMs: 5_000 } });
    const operation = { name: 'read page views', method: 'GET', url: '/views' } as const;
    let requests = 0;
    const views: typeof client.views = (query, options) => {
      requests++;
      return isRefused(daysBetween(query.dateFrom, query.dateTo))
        ? Promise.reject(new RefusedError(operation, 400, 'range too long'))
        : client.views(query, options);
    };
    const refused: StoredTotals[] = [];
    const found: DifferingDay[] = [];
    for await (const one of findDifferingDays({ views }, stored, undefined, refused)) found.push(one);
    expect(found).toEqual([]);
    expect(refused).toHaveLength(uncompared);
    expect(requests).toBeLessThanOrEqual(most);
  });
});
