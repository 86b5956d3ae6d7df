import { describe, expect, test } from 'vitest';
import type { Client } from '../../src/api/client.js';
import type { PageViews } from '../../src/api/schema.js';
import { RefusedError, TryLaterError } from '../../src/api/errors.js';
import { addDays, type Day, day, daysBetween, daysIn } from '../../src/day.js';
import { type DifferingDay, findDifferingDays, type StoredTotals } from '../../src/export/verify.js';
import { equalCounts, NO_VIEWS, sumCounts } from '../../src/export/totals.js';
import {
  AdditivityError,
  expectAdditive,
  INCLUSIVE,
  largest,
  largestConfirmed,
} from '../../src/export/probe.js';
import { openClient } from '../api/open-client.js';
import { rowsOf, servePlatform } from '../platform.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { withOneMore } from './open-export.js';

const OPERATION = { name: 'read page views', method: 'GET', url: '/views' } as const;
const FIRST = day('2025-11-15');
const YEAR = daysIn({ first: FIRST, last: addDays(FIRST, 364) });
const stored: readonly StoredTotals[] = YEAR.map((at) => ({ day: at, ...sumCounts(rowsOf(at, 5)) }));

/** Verifies what is stored against a platform on which these days changed, and counts its requests. */
async function verify(changed: ReadonlyMap<Day, readonly PageViews[]>, days = stored) {
  const platform = await servePlatform({ now: () => NOW, rowsOf: (at) => changed.get(at) ?? rowsOf(at, 5) });
  const client = openClient(platform.baseUrl, { limits: { responseTimeoutMs: 5_000 } });
  const found: DifferingDay[] = [];
  for await (const day of findDifferingDays(client, days)) found.push(day);
  return { found: found.map((one) => one.stored.day), details: found, requests: platform.views.length };
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
    const empty = stored.with(5, { day: dayAt(5), ...NO_VIEWS });
    const { details, requests } = await verify(new Map(forgotten.map((at) => [at, []])), empty);
    expect(details.map((one) => one.stored.day)).toEqual(forgotten.toSpliced(5, 1));
    expect(details.every(({ platform }) => equalCounts(platform, NO_VIEWS))).toBe(true);
    expect(requests).toBeLessThanOrEqual(1 + 2 * Math.ceil(Math.log2(365)));
  });

  /** Verifies some days against a platform that refuses ranges. */
  async function refusing(
    days: readonly Day[],
    isRefused: (first: Day) => boolean,
    error: Error = new RefusedError(OPERATION, 403, 'not in your plan'),
  ) {
    let requests = 0;
    const views: Pick<Client, 'views'>['views'] = ({ dateFrom }) => {
      requests++;
      return isRefused(dateFrom)
        ? Promise.reject(error)
        : Promise.resolve({ totals: NO_VIEWS, views: [], hasMore: false });
    };
    const refused: Day[] = [];
    const none = days.map((at) => ({ day: at, ...NO_VIEWS }));
    for await (const { stored } of findDifferingDays({ views }, none, undefined, refused))
      expect.fail(stored.day);
    expect(days).toEqual(expect.arrayContaining(refused));
    return { refused: refused.length, requests };
  }

  test('gives up on older days after two refused ranges in a row, not after two in all', async () => {
    const runs = YEAR.filter((_, index) => index < 40 && index % 8 > 0);
    expect(await refusing(runs, () => true)).toEqual({ refused: 35, requests: 2 });
    const refusedOnce = [1, 17, 33].map(dayAt);
    const apart = await refusing(runs, (first) => refusedOnce.includes(first));
    expect(apart).toEqual({ refused: 21, requests: 5 });
    expect(await refusing(runs, (first) => first < dayAt(24))).toEqual({ refused: 21, requests: 4 });
  });

  test('halves a refused range down to a week', async () => {
    expect(await refusing(YEAR.slice(0, 13), () => true)).toEqual({ refused: 13, requests: 1 });
    expect(await refusing(YEAR.slice(0, 14), () => true)).toEqual({ refused: 14, requests: 3 });
  });

  test('ends with the error if the key is refused, or if a single day fails', async () => {
    const unknownKey = new RefusedError(OPERATION, 401, 'unknown key');
    await expect(refusing(YEAR, () => true, unknownKey)).rejects.toThrow(unknownKey);
    const limited = new TryLaterError(OPERATION, 'rate-limited', 'slow down');
    await expect(refusing(YEAR, () => true, limited)).rejects.toThrow(limited);
    const failing = new TryLaterError(OPERATION, 'server-error', 'out of memory');
    await expect(refusing(YEAR.slice(0, 1), () => true, failing)).rejects.toThrow(failing);
    expect(await refusing(YEAR.slice(0, 2), () => true, failing)).toEqual({ refused: 2, requests: 1 });
  });

  test('finds the largest number of days, and never looks beyond what it may be', async () => {
    for (const first of [1, 3, 8])
      for (let most = 0; most <= 9; most++)
        for (let last = 0; last <= 12; last++) {
          const asked = [0];
          const holds = (number: number) => Promise.resolve(asked.push(number) > 0 && number <= last);
          expect(await largest(holds, first, most)).toBe(Math.min(last, most));
          expect(Math.max(...asked)).toBeLessThanOrEqual(most);
          expect(asked.length).toBeLessThanOrEqual(8);
        }
    // One mistake does not decide, wherever it is.
    for (let mistake = 1; mistake <= 40; mistake++) {
      let made = false;
      const holds = (number: number) => {
        const isMistake = number === mistake && !made;
        made ||= isMistake;
        return Promise.resolve(!isMistake && number <= 37);
      };
      expect(await largestConfirmed(holds, 3, 90), String(mistake)).toBe(37);
    }
    const asked: number[] = [];
    await largest((number) => Promise.resolve(asked.push(number) > 0 && number < 2), 1, 99);
    expect(asked).toEqual([1, 2]);
  });

  test.each([
    ['31 days', (days: number) => days > 31, 0, 31],
    ['more than 3 days, so nothing is compared', (days: number) => days > 3, 365, 127],
  ])('on a platform that refuses ranges of more than %s', async (_, isRefused, uncompared, most) => {
    const platform = await servePlatform({ now: () => NOW, rowsOf: (at) => rowsOf(at, 5) });
    const client = openClient(platform.baseUrl, { limits: { responseTimeoutMs: 5_000 } });
    let requests = 0;
    const views: typeof client.views = (query, options) => {
      requests++;
      return isRefused(daysBetween(query.dateFrom, query.dateTo))
        ? Promise.reject(new RefusedError(OPERATION, 400, 'range too long'))
        : client.views(query, options);
    };
    const refused: Day[] = [];
    const found: DifferingDay[] = [];
    for await (const one of findDifferingDays({ views }, stored, undefined, refused)) found.push(one);
    expect(found).toEqual([]);
    expect(refused).toHaveLength(uncompared);
    expect(requests).toBeLessThanOrEqual(most);
  });
});

describe('a platform whose days do not add up to their range', () => {
  const refusal = new RefusedError(OPERATION, 400, 'empty range');
  const sum = (human: number) => ({ human, ai: 0, total: human });
  /** Two days of 3 and 4 views; what it answers about no day, and about both in turn. */
  const check = (none: number | Error, ...both: (number | Error)[]) => {
    const views: Pick<Client, 'views'>['views'] = ({ dateFrom, dateTo }) => {
      const days = daysBetween(dateFrom, dateTo);
      const answer = days === 0 ? none : days === 2 ? (both.shift() ?? NaN) : dateFrom === FIRST ? 3 : 4;
      if (answer instanceof Error) return Promise.reject(answer);
      return Promise.resolve({ totals: sum(answer), views: [], hasMore: false });
    };
    return expectAdditive({ views }, FIRST).then(
      () => both.length,
      (error: unknown) => (error instanceof AdditivityError ? error.message : error),
    );
  };

  test('is refused by name, unless late views or a range without views explain it', async () => {
    // A range of no days is empty: nothing else is requested.
    expect(await check(0, 9)).toBe(1);
    expect(await check(refusal, 7)).toBe(0);
    expect(await check(refusal, 0)).toBe(0);
    expect(await check(refusal, refusal)).toBe(0);
    expect(await check(refusal, 6, 8)).toBe(0);
    expect(await check(refusal, 6, 7)).toBe(0);
    expect(await check(4, 7)).toBe(0);
    const words = '(2025-11-15 and 2025-11-16 have 3 and 4 views, but together 9)';
    expect(await check(refusal, 9, 10)).toContain(words);
    expect(await check(refusal, 5, 6)).toContain('but together 5)');
    expect(await check(refusal, 9, 9)).toContain(`total of their range ${words}. No day is stored`);
    expect(await check(4, 9, 9)).toContain(`${INCLUSIVE} ${words}`);
  });
});
