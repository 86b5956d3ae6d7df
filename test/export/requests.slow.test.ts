import { describe, expect, test } from 'vitest';
import { addDays } from '../../src/day.js';
import { auditHistory } from '../../src/export/verify.js';
import { requestsFor } from '../../src/export/plan.js';
import { DAY_MS, MINUTE_MS } from '../sleeping-clock.js';
import { openExport, SETTLE_DAYS, withOneMore } from './open-export.js';

test.each([
  { pages: 3, expected: { first: 380, night: 5, audits: [1, 10, 103] } },
  // As many as a page has room for.
  { pages: 250, expected: { first: 380, night: 5, audits: [1, 10, 103] } },
  { pages: 900, expected: { first: 1_484, night: 11, audits: [1, 10, 103] } },
])('a year of days of $pages pages takes the requests in bench/RESULTS.md', async ({ pages, expected }) => {
  const opened = await openExport({ days: 365 + SETTLE_DAYS, pages });
  const { result, requests: first } = await opened.counting(() => opened.run());
  expect(result.results.filter(({ outcome }) => outcome === 'added')).toHaveLength(365 + SETTLE_DAYS);
  const audits: number[] = [];
  for (const changed of [0, 1, 20]) {
    for (let index = 0; index < changed; index++) {
      const at = addDays(opened.yesterday(), -10 - index * 17);
      opened.changed.set(at, withOneMore(opened.original(at)));
    }
    audits.push((await opened.counting(() => auditHistory(opened.task, { repair: false }))).requests);
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
      expect(result.check).toMatchObject({ differing: [], days: 29 - SETTLE_DAYS + night });
      // The day that becomes final is read in full.
      expect(requests).toBeLessThanOrEqual(2 * requestsFor(pages, 250) + SETTLE_DAYS - 1 + 1);
    }
  });

  test('run again on the same day costs one request for each day that is settling', async () => {
    const opened = await openExport({ days: 30 });
    await opened.run();
    await opened.run();
    opened.clock.advance(5 * MINUTE_MS);
    expect((await opened.counting(() => opened.run())).requests).toBe(SETTLE_DAYS);
  });
});
