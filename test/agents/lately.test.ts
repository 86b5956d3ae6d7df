import { expect, it } from 'vitest';
import { reasonWords } from '../../src/agents/reasons.js';
import { emptyState } from '../../src/state/open.js';
import { emptyHistory, loadDays } from '../reports/history.js';
import { planFrom, RULES } from './reading.js';

/** On the Monday after a history of ten weeks, which ends on Sunday, Nov 22. */
const NOW = new Date('2026-11-23T04:00:00Z');

/** What is flagged, and why the others are not, on a site of which two pages are known, with this SQL for the views of a third on a day. */
async function planOf(views: string, { site = '600', more = '' } = {}) {
  const history = await emptyHistory();
  await history.run(`
    INSERT INTO page_views
    SELECT 'prj_sandbox', day::DATE, path, path, views, 0, views
    FROM
      generate_series(DATE '2026-09-14', DATE '2026-11-22', INTERVAL 1 DAY) AS calendar (day),
      LATERAL (VALUES ('/a', (${site})::BIGINT), ('/b', (${site})::BIGINT // 2), ('/c', (${views})::BIGINT)) AS page (path, views)
    WHERE views > 0`);
  await loadDays(history);
  await history.run(more);
  const stores = { state: emptyState(), reader: history.reader };
  const { flagged, leftOut } = await planFrom(stores, 'prj_sandbox', RULES, { now: NOW });
  return {
    flagged: flagged.map(({ path }) => path).toSorted(),
    leftOut: leftOut.map(({ path, why }) => `${path}: ${reasonWords(why)}`),
    why: flagged.find(({ path }) => path === '/c')?.why,
  };
}

it('a page that was viewed a thousand times a day until last Wednesday is not flagged', async () => {
  const { flagged, leftOut } = await planOf("if(day <= DATE '2026-11-18', 1000, 0)");
  expect(flagged).toEqual(['/a', '/b']);
  expect(leftOut).toEqual(['/c: no views in the two days to Nov 22, 2026 (usually 2,000)']);
});

it('the reason for a page says how often it was viewed lately', async () => {
  const { why } = await planOf("if(day <= DATE '2026-11-15', 1000, 800)");
  expect(why && reasonWords(why)).toBe(
    '#1 of 3 pages: 7,000 views in a typical week (7,000 by people, 0 by AI), steady over eight weeks; ' +
      '5,600 in the seven days to Nov 22, 2026',
  );
});

it('the reason for a page does not count a week with an outage as views of seven days', async () => {
  const isUp = "day <> DATE '2026-11-18'";
  const { why } = await planOf(`if(${isUp}, 1000, 0)`, {
    site: `if(${isUp}, 600, 0)`,
    more: "INSERT INTO days SELECT * REPLACE (day - 1 AS day, 0 AS human, 0 AS ai, 0 AS total, 0 AS pages) FROM days WHERE day = DATE '2026-11-19'",
  });
  expect(why && reasonWords(why)).toMatch(/ over eight weeks; 2,000 in the two days to Nov 22, 2026$/);
});

it.each([
  ['that is read on weekdays only', 'if(isodow(day) < 6, 100, 0)', {}],
  [
    'on holidays, when the whole site is read less',
    "if(day <= DATE '2026-11-20', 1000, 90)",
    { site: "if(day <= DATE '2026-11-20', 600, 60)" },
  ],
  [
    'whose latest views have not come yet',
    "if(day <= DATE '2026-11-20', 1000, 0)",
    {
      more: `
        UPDATE days SET first_loaded_at = day + INTERVAL '1 day 2 hours';
        INSERT INTO restatements
        SELECT project, day, day + INTERVAL '3 days 2 hours', day + INTERVAL '2 days', human // 2, human, ai, ai, total // 2, total, 3
        FROM days`,
    },
  ],
  ['that has few views on two days', "if(day <= DATE '2026-11-20', if(isodow(day) < 6, 60, 9), 0)", {}],
])('a page %s is flagged', async (_, views, site) => {
  expect((await planOf(views, site)).flagged).toEqual(['/a', '/b', '/c']);
});
