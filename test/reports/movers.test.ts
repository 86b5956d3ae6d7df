import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { backtestMovers } from '../../bench/movers/backtest.js';
import { day } from '../../src/day.js';
import { loadDays, siteHistory, type TestHistory } from './history.js';

const mover = z.object({
  audience: z.string(),
  path: z.string(),
  views: z.number(),
  expected: z.number(),
  compared_with: z.string(),
  z: z.number().nullable(),
});

let history: TestHistory;
beforeEach(async () => {
  history = await siteHistory({ first: day('2026-08-31'), pages: 60 });
});
afterEach(() => {
  history.close();
});

const movers = (week = '2026-11-09') => history.reader.query(`FROM movers('${week}')`, mover);

/** Changes the counts of a page in the week of November 9. */
async function change(path: string, set: string, more = 'true'): Promise<void> {
  await history.run(
    `UPDATE page_views SET ${set} WHERE path = '${path}' AND day >= '2026-11-09' AND ${more}`,
  );
  await history.run('UPDATE page_views SET total = human + ai');
  await loadDays(history);
}

describe('what moved', () => {
  test('is nothing in a normal week, although AI traffic grows', async () => {
    expect(await movers()).toEqual([]);
  });

  test('separates human from AI views, and includes the expected views', async () => {
    await change('/changelog', 'human = human * 2');
    expect(await movers()).toMatchObject([
      { audience: 'human', path: '/changelog', compared_with: 'earlier weeks' },
    ]);
    const [found] = await movers();
    expect((found?.views ?? 0) / (found?.expected ?? 0)).toBeCloseTo(2, 0);
  });

  test('shows a page that vanished', async () => {
    await history.run(`DELETE FROM page_views WHERE path = '/guides/webhooks' AND day >= '2026-11-09'`);
    await loadDays(history);
    const found = await movers();
    expect(found.map(({ audience, path, views }) => [audience, path, views])).toEqual(
      expect.arrayContaining([
        ['human', '/guides/webhooks', 0],
        ['ai', '/guides/webhooks', 0],
      ]),
    );
  });

  test('leaves out a two-day burst on a page without readers', async () => {
    await history.run(`DELETE FROM page_views WHERE path = '/changelog' AND day >= '2026-11-09'`);
    await history.run(`INSERT INTO page_views
      VALUES ('prj_1', '2026-11-10', '/changelog', 5000, 0, 5000), ('prj_1', '2026-11-11', '/changelog', 5000, 0, 5000)`);
    await loadDays(history);
    expect((await movers()).filter(({ audience }) => audience === 'human')).not.toContainEqual(
      expect.objectContaining({ path: '/changelog' }),
    );
  });

  test('leaves out pages seen for fewer than four weeks, and weeks that are not fully loaded', async () => {
    await history.run(`INSERT INTO page_views
      SELECT 'prj_1', day::DATE, '/young', if(day >= '2026-11-09', 60, 10), 0, if(day >= '2026-11-09', 60, 10)
      FROM generate_series(DATE '2026-10-19', DATE '2026-11-15', INTERVAL 1 DAY) AS calendar (day)`);
    await loadDays(history);
    expect(await movers()).toEqual([]);
    await change('/changelog', 'human = human * 2');
    expect(await movers()).toHaveLength(1);
    await history.run(`DELETE FROM day_loads WHERE day = '2026-11-12'`);
    expect(await movers()).toEqual([]);
  });

  test('with fewer than four full weeks before is the change from the week before, and says so', async () => {
    await history.run(`DELETE FROM page_views WHERE day < '2026-10-26'`);
    await change('/changelog', 'human = human * 2');
    expect(await movers()).toMatchObject([
      { audience: 'human', path: '/changelog', compared_with: 'the week before', z: null },
    ]);
  });
});

test('planted movers are found with a precision at ten of 0.75, where simpler rankings fail', async () => {
  const scores = Object.fromEntries((await backtestMovers(8)).map(({ way, precision }) => [way, precision]));
  expect(scores['movers']).toBeGreaterThanOrEqual(0.75);
  for (const way of ['percent change', 'absolute change', 'Poisson z']) expect(scores[way]).toBeLessThan(0.5);
});
