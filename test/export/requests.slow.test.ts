import { expect, test } from 'vitest';
import { addDays } from '../../src/day.js';
import { auditHistory } from '../../src/export/verify.js';
import { DAY_MS } from '../sleeping-clock.js';
import { openExport, SETTLE_DAYS, withOneMore } from './open-export.js';

test.each([
  { pages: 3, expected: { first: 382, night: 5, audits: [1, 10, 103] } },
  // As many as a page has room for.
  { pages: 250, expected: { first: 382, night: 5, audits: [1, 10, 103] } },
  { pages: 900, expected: { first: 1_486, night: 11, audits: [1, 10, 103] } },
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
