import { describe, expect, test } from 'vitest';
import { addDays, type Day, day, daysBetween } from '../../src/day.js';
import { auditHistory } from '../../src/export/verify.js';
import { requestsFor } from '../../src/export/plan.js';
import { DAY_MS, MINUTE_MS } from '../budget/open-budget.js';
import { type OpenExport, openExport, SETTLE_DAYS, withOneMore } from './open-export.js';

/** The API promises no data from before this day, so none is searched for. */
const SEARCHED_SINCE = day('2015-01-01');
const bisection = (last: Day) => 2 * Math.ceil(Math.log2(daysBetween(SEARCHED_SINCE, last))) + 2;

/** How often each full page of each day was requested. */
function readings({ platform }: OpenExport, since = 0): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { from, offset, limit } of platform.views.slice(since)) {
    const key = `${from} ${offset}`;
    if (limit === 250) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

describe('a fresh backfill, counted by the platform', () => {
  test.each([
    { days: 1, pages: 1 },
    { days: 30, pages: 250 },
    { days: 60, pages: 251 },
    { days: 20, pages: 1_999 },
  ])(
    'of $days days of $pages pages requests every page once, and finds the first day by bisection',
    async (size) => {
      const opened = await openExport(size);
      const { result, requests } = await opened.counting(() => opened.run());
      expect(result.results.filter(({ outcome }) => outcome === 'added')).toHaveLength(size.days);
      expect([...readings(opened).values()].every((count) => count === 1)).toBe(true);
      expect(readings(opened).size).toBe(size.days * requestsFor(size.pages));
      expect(requests).toBeLessThanOrEqual(
        size.days * requestsFor(size.pages) + bisection(opened.yesterday()),
      );
    },
  );
});

test.each([
  { pages: 3, expected: { first: 380, night: 5, audits: [1, 10, 103] } },
  { pages: 900, expected: { first: 1_484, night: 11, audits: [1, 10, 103] } },
])('a year of days of $pages pages takes the requests in bench/RESULTS.md', async ({ pages, expected }) => {
  const opened = await openExport({ days: 365 + SETTLE_DAYS, pages });
  const first = (await opened.counting(() => opened.run())).requests;
  const audits: number[] = [];
  for (const changed of [0, 1, 20]) {
    for (let index = 0; index < changed; index++) {
      const at = addDays(opened.yesterday(), -10 - index * 17);
      opened.changed.set(at, withOneMore(opened.original(at)));
    }
    audits.push((await opened.counting(() => auditHistory(opened.task, false))).requests);
    opened.changed.clear();
  }
  opened.clock.advance(DAY_MS);
  const night = (await opened.counting(() => opened.run())).requests;
  expect({ first, night, audits }).toEqual(expected);
});

describe('an ordinary night, counted by the platform', () => {
  test.each([3, 900])('with days of %i pages and nothing restated', async (pages) => {
    const opened = await openExport({ days: 30, pages });
    await opened.run();
    for (const night of [1, 2, 3]) {
      opened.clock.advance(DAY_MS);
      const { result, requests } = await opened.counting(() => opened.run());
      expect(result.results.map(({ outcome }) => outcome).sort(), `night ${night}`).toEqual([
        'added',
        ...Array<string>(SETTLE_DAYS).fill('unchanged'),
      ]);
      // The day that became final tonight was read tonight.
      expect(result.check).toMatchObject({ differing: [], days: 29 - SETTLE_DAYS + 2 * night - 1 });
      // The day that becomes final is read in full.
      expect(requests).toBeLessThanOrEqual(2 * requestsFor(pages) + SETTLE_DAYS - 1 + 1);
      opened.clock.advance(DAY_MS);
      const spareRequests = 5;
      const spared = await opened.counting(() => opened.run(undefined, { spareRequests }));
      // However large the days, each is looked at in its turn.
      expect(spared.requests).toBe(2 * requestsFor(pages) + SETTLE_DAYS - 1 + 1 + spareRequests);
    }
  });

  test('finds a recent final day that changed, and loads it again', async () => {
    const opened = await openExport({ days: 30 });
    await opened.run();
    const at = addDays(opened.yesterday(), -10);
    opened.changed.set(at, withOneMore(opened.original(at)));
    opened.clock.advance(DAY_MS);
    const { result } = await opened.counting(() => opened.run());
    expect(result.check?.differing).toEqual([at]);
    expect(await opened.storedRows(at)).toEqual(expect.arrayContaining(withOneMore(opened.original(at))));
  });

  test('run again on the same day costs one request for each day that is settling', async () => {
    const opened = await openExport({ days: 30 });
    await opened.run();
    await opened.run();
    opened.clock.advance(5 * MINUTE_MS);
    expect((await opened.counting(() => opened.run())).requests).toBe(SETTLE_DAYS);
  });

  test('recognizes a provisional day by its first page, in any order of the rows', async () => {
    const opened = await openExport({ days: 5, pages: 700 });
    await opened.run();
    opened.clock.advance(DAY_MS);
    const settling = addDays(opened.yesterday(), -1);
    opened.changed.set(settling, opened.original(settling).reverse());
    const before = opened.platform.views.length;
    await opened.run();
    const asked = [...readings(opened, before).keys()].filter((key) => key.startsWith(settling));
    expect(asked).toEqual([`${settling} 0`]);
    expect(await opened.statesOf(settling)).toEqual(['provisional']);
  });
});
