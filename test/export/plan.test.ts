import { describe, expect, test } from 'vitest';
import { addDays, type Day, day, type DayRange, daysIn } from '../../src/day.js';
import type { DayRecords, DayRecord, DayState } from '../../src/export/day-records.js';
import {
  expectedRows,
  isSettled,
  needsPerson,
  nightlyRequests,
  planExport,
  requestsFor,
  retryAt,
} from '../../src/export/plan.js';
import { NOW } from '../sandbox/open-sandbox.js';

const LAST_NIGHT = new Date('2026-11-17T02:15:00Z');
const YESTERDAY = day('2026-11-17');

const record = (
  at: Day,
  state: DayState,
  pages: number | null = 300,
  attemptedAt = LAST_NIGHT,
  failures = 0,
): DayRecord => ({
  day: at,
  state,
  is_stored: pages !== null,
  attempted_at: attemptedAt,
  pages,
  failures,
  failure: null,
  human: 1,
  ai: 1,
  total: 2,
});
const recordsOf = (...records: DayRecord[]): DayRecords => new Map(records.map((one) => [one.day, one]));
const range = { first: day('2026-11-08'), last: YESTERDAY };
const plan = (records: DayRecords, days: DayRange = range, now = NOW, reload = false) =>
  planExport(records, days, now, { settleDays: Infinity, pageSize: 250, reload });

describe('the plan of an export', () => {
  const records = recordsOf(
    record(day('2026-11-09'), 'final'),
    record(day('2026-11-11'), 'inconsistent'),
    record(day('2026-11-12'), 'failed', null),
    record(day('2026-11-13'), 'final'),
    record(day('2026-11-14'), 'failed'),
    record(day('2026-11-15'), 'provisional'),
    record(day('2026-11-16'), 'provisional'),
  );

  test('has yesterday first, then days that may have changed or failed, then the gaps, each newest first', () => {
    expect(plan(records).days.map(({ day: at, due, stage }) => [at, due, stage])).toEqual([
      ['2026-11-17', 'yesterday', 'latest'],
      ['2026-11-16', 'provisional', 'latest'],
      ['2026-11-15', 'provisional', 'latest'],
      ['2026-11-14', 'failed', 'latest'],
      ['2026-11-12', 'failed', 'latest'],
      ['2026-11-11', 'inconsistent', 'latest'],
      ['2026-11-10', 'missing', 'past'],
      ['2026-11-08', 'missing', 'past'],
    ]);
    expect(plan(records)).toMatchObject({ alreadyFinal: 2, readToday: 0 });
  });

  test('counts one request for a provisional day, and for others one per page of the day, or of the newest day', () => {
    const requests = Object.fromEntries(plan(records).days.map((planned) => [planned.day, planned.requests]));
    expect(requests).toMatchObject({ '2026-11-17': 2, '2026-11-16': 1, '2026-11-14': 2, '2026-11-08': 2 });
    expect(plan(records).requests).toBe(2 + 1 + 1 + 2 + 2 + 2 + 2 + 2);
  });

  test('is empty when every day is final', () => {
    const done = recordsOf(...daysIn(range).map((at) => record(at, 'final')));
    expect(plan(done)).toMatchObject({ days: [], requests: 0, alreadyFinal: 10 });
    const { days } = plan(done, range, NOW, true);
    expect(days).toHaveLength(10);
    expect(days[0]).toMatchObject({ day: YESTERDAY, due: 'reload', stage: 'past' });
  });

  test('reads a day that may change, or changed, once a day, however often a backfill resumes', () => {
    const atMidnight = new Date('2026-11-18T00:05:00Z');
    const read = recordsOf(
      record(YESTERDAY, 'provisional', 300, atMidnight),
      record(day('2026-11-16'), 'inconsistent', 300, atMidnight),
      record(day('2026-11-15'), 'provisional', 300, LAST_NIGHT),
    );
    const planned = plan(read);
    const again = planned.days.filter(({ due }) => due !== 'missing').map(({ day: at }) => at);
    expect(again).toEqual(['2026-11-15']);
    expect(planned).toMatchObject({ readToday: 1, waiting: ['2026-11-16'] });
    // Without gaps there is no backfill to resume, so an export that is run again reads those that may change again.
    const asked = plan(read, { first: day('2026-11-15'), last: YESTERDAY });
    expect(asked.days.map(({ due }) => due)).toEqual(['provisional', 'provisional']);
  });

  test('retries yesterday, if it failed today, after the other days', () => {
    const today = new Date('2026-11-18T02:15:00Z');
    const failed = recordsOf(record(YESTERDAY, 'failed', null, today));
    expect(plan(failed).days[0]).toMatchObject({ day: YESTERDAY, due: 'yesterday', stage: 'past' });
  });

  test('retries days that failed today after the gaps, so that a stretch that always fails delays none of them', () => {
    const today = new Date('2026-11-18T02:15:00Z');
    const rest = daysIn(range).filter((at) => at > '2026-11-12');
    const failed = recordsOf(
      ...rest.map((at) => record(at, 'final')),
      record(day('2026-11-12'), 'failed', null, today),
      record(day('2026-11-11'), 'failed', null, LAST_NIGHT),
      record(day('2026-11-09'), 'failed', null, today),
    );
    expect(plan(failed).days.map(({ day: at, due }) => [at, due])).toEqual([
      ['2026-11-11', 'failed'],
      ['2026-11-10', 'missing'],
      ['2026-11-08', 'missing'],
      ['2026-11-12', 'failed'],
      ['2026-11-09', 'failed'],
    ]);
  });

  test('leaves out a day that failed twice until its retry', () => {
    const tried = new Date(NOW.getTime() - 30 * 60_000);
    const bad = record(day('2026-11-10'), 'failed', null, tried, 2);
    const rest = daysIn(range).filter((at) => at !== bad.day);
    const failed = recordsOf(bad, ...rest.map((at) => record(at, 'final')));
    expect(plan(failed)).toMatchObject({ days: [], waiting: ['2026-11-10'], readToday: 0 });
    const later = new Date(NOW.getTime() + 30 * 60_000);
    expect(plan(failed, range, later)).toMatchObject({ days: [{ day: '2026-11-10' }], waiting: [] });
    const once = { ...bad, failures: 1 };
    const ahead = { ...bad, attempted_at: new Date(NOW.getTime() + 60_000) };
    for (const other of [once, ahead])
      expect(plan(recordsOf(...rest.map((at) => record(at, 'final')), other)).days).toHaveLength(1);
  });

  test('leaves out a day that did not add up until the next night, and for a week after the third', () => {
    const rest = daysIn(range).filter((at) => at !== '2026-11-10');
    const final = rest.map((at) => record(at, 'final'));
    const inDoubt = (nights: number, hours: number) =>
      plan(
        recordsOf(...final, record(day('2026-11-10'), 'inconsistent', 300, LAST_NIGHT, nights)),
        range,
        new Date(LAST_NIGHT.getTime() + hours * HOUR_MS),
      ).days.length;
    expect([inDoubt(1, 1), inDoubt(1, 24), inDoubt(2, 24)]).toEqual([0, 1, 1]);
    expect([inDoubt(3, 24), inDoubt(3, 6 * 24), inDoubt(3, 7 * 24)]).toEqual([0, 0, 1]);
    expect(needsPerson(record(day('2026-11-10'), 'failed', null, LAST_NIGHT, 3))).toBe(false);
    // A year later, after a quarter of its age: a platform may never show all rows of any day.
    const old = record(day('2025-11-17'), 'inconsistent', 300, LAST_NIGHT, 9);
    expect(retryAt(old)).toEqual(new Date('2027-02-16T00:00:00Z'));
  });

  test('of a range that ends before it begins is empty', () => {
    const future = { first: addDays(YESTERDAY, 30), last: YESTERDAY };
    expect(plan(records, future)).toMatchObject({ days: [], alreadyFinal: 0, readToday: 0 });
  });
});

test('a day that was not read yet is expected to have the rows of the next stored one, or else of the last', () => {
  const records = recordsOf(
    record(day('2026-11-05'), 'final', 100),
    record(day('2026-11-10'), 'failed', null),
    record(day('2026-11-15'), 'final', 1_100),
    record(day('2026-11-16'), 'final', 1_200),
  );
  const days = ['2026-11-01', '2026-11-05', '2026-11-08', '2026-11-15', '2026-11-17'].map(day);
  expect(days.map(expectedRows(records))).toEqual([100, 100, 1_100, 1_100, 1_200]);
  expect(days.map(expectedRows(new Map()))).toEqual([0, 0, 0, 0, 0]);
});

const HOUR_MS = 3_600_000;
const hoursUntilRetry = (at: Day, failures: number): number =>
  (retryAt(record(at, 'failed', null, LAST_NIGHT, failures)).getTime() - LAST_NIGHT.getTime()) / HOUR_MS;

test('an old day that keeps failing is retried at growing intervals, at least once a week', () => {
  const intervals = [1, 2, 3, 4, 5, 6, 7].map((failures) => hoursUntilRetry(day('2025-01-01'), failures));
  expect(intervals).toEqual([0, 1, 4, 16, 64, 168, 168]);
});

test('a recent day that keeps failing is retried several times a day', () => {
  const intervals = [2, 3, 4, 9].map((failures) => hoursUntilRetry(day('2026-11-16'), failures));
  expect(intervals.slice(0, 2)).toEqual([1, 4]);
  expect(Math.max(...intervals)).toBeLessThan(7);
  expect(hoursUntilRetry(day('2026-11-17'), 9)).toBe(1);
});

test.each([
  [0, 1],
  [1, 1],
  [250, 1],
  [251, 2],
  [5_000, 20],
])('a day of %i pages takes %i requests', (pages, requests) => {
  expect(requestsFor(pages, 250)).toBe(requests);
});

test('a night takes requests for yesterday and the days still settling, and one for the past', () => {
  expect(nightlyRequests(900, 3, 250)).toBe(4 + 3 * 4 + 1);
});

test.each([
  [0, '2026-11-10T23:59:59.999Z', false],
  [0, '2026-11-11T00:00:00Z', true],
  [1, '2026-11-11T23:59:59.999Z', false],
  [1, '2026-11-12T00:00:00Z', true],
  [3, '2026-11-13T23:59:59.999Z', false],
  [3, '2026-11-14T00:00:00Z', true],
  [3, '2027-11-14T00:00:00Z', true],
])('a day has settled %i whole days after it ended: at %s it is %s', (settleDays, now, settled) => {
  expect(isSettled(day('2026-11-10'), new Date(now), settleDays)).toBe(settled);
});
