import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { addDays, day } from '../../src/day.js';
import { emptyHistory, loadDays, type TestHistory } from '../reports/history.js';

const FIRST = day('2026-01-05');
const PLANTED = 80;

const differenceRow = z.object({
  audience: z.enum(['human', 'ai']),
  path: z.string(),
  views: z.int(),
  usual: z.int(),
  difference: z.int(),
  site_difference: z.int(),
  share: z.number().nullable(),
});

/** 40 pages over 263 days, fewer views at weekends, growing AI traffic and noise by hash; and `causes`, added to some views. */
const siteSql = (causes: string) => `
CREATE OR REPLACE TEMP TABLE cause AS ${causes};
DELETE FROM page_views; DELETE FROM days; DELETE FROM notes;
INSERT INTO page_views
SELECT 'prj_1', day, path, path, human, ai, human + ai
FROM (
  SELECT
    day,
    path,
    greatest(0, round(usual * if(isodow(day) > 5, 0.5, 1) * (0.85 + hash(path, day, 'human') % 30 / 100)) + coalesce(human, 0))::BIGINT AS human,
    greatest(0, round(usual * (0.5 + number / 500) * (0.85 + hash(path, day, 'ai') % 30 / 100)) + coalesce(ai, 0))::BIGINT AS ai
  FROM
    (SELECT '/page-' || page AS path, 400 // page + 10 AS usual FROM range(1, 41) AS pages (page))
    CROSS JOIN (SELECT number, DATE '${FIRST}' + number::INTEGER AS day FROM range(263) AS days (number))
    LEFT JOIN cause USING (path, number)
)`;

/** One page and audience a day, from the sixty-third day on: a rise of some page in three of four, else one of the two most read loses its views. */
const CAUSES = `
SELECT
  63 + range AS number,
  '/page-' || 1 + hash(range) % if(change < 0, 2, 10) AS path,
  if(hash(range, 'audience') % 2 = 0, change, 0) AS human,
  if(hash(range, 'audience') % 2 = 0, 0, change) AS ai
FROM (SELECT range, if(hash(range, 'rise') % 4 = 0, -400, 300 + hash(range, 'size') % 300) AS change FROM range(${PLANTED}))`;

describe('what made the difference on a day', () => {
  let history: TestHistory;
  beforeAll(async () => {
    history = await emptyHistory();
  });
  const fill = async (causes: string) => {
    await history.run(siteSql(causes));
    await loadDays(history);
  };
  const differences = (from: string, to = from) =>
    history.reader.query(`FROM day_differences('${from}', last_day := '${to}')`, differenceRow);

  it(`is the planted cause on each of ${PLANTED} days`, async () => {
    await fill(CAUSES);
    const plantedRow = z.object({ number: z.int(), path: z.string(), human: z.int(), ai: z.int() });
    const planted = await history.reader.query('FROM cause ORDER BY number', plantedRow);
    expect(planted).toHaveLength(PLANTED);
    const missed = [];
    for (const { number, path, human, ai } of planted) {
      const change = human + ai;
      const [first] = await differences(addDays(FIRST, number));
      const isFound =
        first?.path === path &&
        first.audience === (human === 0 ? 'ai' : 'human') &&
        first.difference > 0 === change > 0;
      if (!isFound) missed.push({ number, path, human, ai, first });
    }
    expect(missed).toEqual([]);
  });

  it('has its share of the rise, and says how many views are usual', async () => {
    await fill("SELECT 100 AS number, '/page-7' AS path, 2000 AS human, 0 AS ai");
    const peak = addDays(FIRST, 100);
    const [first] = await differences(peak);
    expect(first).toMatchObject({ path: '/page-7', audience: 'human' });
    const sums = await history.reader.query(
      `SELECT human AS views, usual, human - usual AS difference FROM page_views, (SELECT median(human) AS usual FROM page_views WHERE path = '/page-7' AND day IN (SELECT DATE '${peak}' - (7 * range)::INTEGER FROM range(1, 9))) WHERE path = '/page-7' AND day = '${peak}'`,
      z.object({ views: z.int(), usual: z.number(), difference: z.number() }),
    );
    expect(first?.views).toBe(sums[0]?.views);
    expect(first?.usual).toBe(Math.round(sums[0]?.usual ?? 0));
    expect(first?.share).toBeCloseTo((sums[0]?.difference ?? 0) / (first?.site_difference ?? 0), 2);
    expect(first?.share).toBeGreaterThan(0.9);
    // Two days are compared with what is usual on both weekdays.
    const both = (await differences(peak, addDays(peak, 1))).find(({ path }) => path === '/page-7');
    expect(both?.usual).toBeGreaterThan(1.4 * (first?.usual ?? Infinity));
  });

  it('is not told from too few days, nor across a break', async () => {
    await fill("SELECT 100 AS number, '/page-7' AS path, 2000 AS human, 0 AS ai");
    expect(await differences(addDays(FIRST, 20))).toEqual([]);
    expect(await differences(addDays(FIRST, 21))).not.toEqual([]);
    expect(await differences(addDays(FIRST, 999))).toEqual([]);
    const note = (path: string) =>
      history.run(
        `INSERT INTO notes (project, day, text, path, is_break) VALUES ('prj_1', DATE '${FIRST}' + 90, 'Bots are left out', '${path}', true)`,
      );
    await note('/page-7*');
    const without = await differences(addDays(FIRST, 100));
    expect(without.length).toBeGreaterThan(0);
    expect(without.map(({ path }) => path)).not.toContain('/page-7');
    await note('*');
    expect(await differences(addDays(FIRST, 100))).toEqual([]);
    expect((await differences(addDays(FIRST, 113))).length).toBeGreaterThan(0);
  });
});
