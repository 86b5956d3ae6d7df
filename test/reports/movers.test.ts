import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { backtest } from '../../bench/movers/backtest.js';
import { SCENARIOS } from '../../bench/movers/scenarios.js';
import { day } from '../../src/day.js';
import { rowsOf } from '../open-history.js';
import { loadDays, sharedSite } from './history.js';

const mover = z.object({
  project: z.string(),
  path: z.string(),
  audience: z.enum(['human', 'ai', 'both']),
  change: z.number(),
  human: z.number(),
  human_expected: z.number(),
  human_low: z.number(),
  human_high: z.number(),
  human_z: z.number(),
  human_weeks: z.array(z.object({ week: z.string(), low: z.number(), high: z.number() })),
  ai: z.number(),
  ai_low: z.number(),
  ai_high: z.number(),
});

const site = sharedSite({ first: day('2026-08-31'), pages: 60 });

const movers = (week = '2026-11-09') => site().reader.query(`FROM movers('${week}')`, mover);

/** Changes the counts of a page in the week of November 9. */
async function change(path: string, set: string, more = 'true'): Promise<void> {
  await site().run(`UPDATE page_views SET ${set} WHERE path = '${path}' AND day >= '2026-11-09' AND ${more}`);
  await site().run('UPDATE page_views SET total = human + ai');
  await loadDays(site());
}

describe('what moved', () => {
  test('is nothing in a normal week, although AI traffic grows', async () => {
    expect(await movers()).toEqual([]);
    // Questions pass the week as a query.
    for (const macro of ['movers', 'usual_range', 'dropped_days'])
      await site().reader.query(`FROM ${macro}((SELECT max(week) FROM site_weeks))`, z.unknown());
  });

  test('separates human from AI views, and includes the expected views', async () => {
    await change('/changelog', 'human = human * 2');
    expect(await movers()).toMatchObject([{ audience: 'human', path: '/changelog' }]);
    const [found = expect.fail('nothing moved')] = await movers();
    expect(found.human / found.human_expected).toBeCloseTo(2, 0);
    expect(found.change).toBeCloseTo(found.human - found.human_expected);
    expect(found.human_expected).toBeGreaterThan(found.human_low);
    expect(found.human_expected).toBeLessThan(found.human_high);
    expect(found.human).toBeGreaterThan(found.human_high);
    expect(found.ai).toBeGreaterThan(found.ai_low);
    expect(found.ai).toBeLessThan(found.ai_high);
    expect(found.human_weeks.map(({ week }) => week)).toEqual(
      ['09-14', '09-21', '09-28', '10-05', '10-12', '10-19', '10-26', '11-02', '11-09'].map(
        (at) => `2026-${at}`,
      ),
    );
    const { low, high } = found.human_weeks.at(-1) ?? {};
    expect(low).toBeCloseTo(found.human_low);
    expect(high).toBeCloseTo(found.human_high);
  });

  test('shows a page that vanished', async () => {
    await site().run(`DELETE FROM page_views WHERE path = '/guides/webhooks' AND day >= '2026-11-09'`);
    await loadDays(site());
    expect(await movers()).toMatchObject([{ path: '/guides/webhooks', audience: 'both', human: 0, ai: 0 }]);
  });

  test('leaves out a two-day burst on a page without readers', async () => {
    await site().run(`DELETE FROM page_views WHERE path = '/changelog' AND day >= '2026-11-09'`);
    await site().run(`INSERT INTO page_views
      VALUES ('prj_1', '2026-11-10', '/changelog', '/changelog', 5000, 0, 5000), ('prj_1', '2026-11-11', '/changelog', '/changelog', 5000, 0, 5000)`);
    await loadDays(site());
    expect((await movers()).filter(({ audience }) => audience !== 'ai')).toEqual([]);
  });

  test('leaves out bots of one night, before and after midnight, on a page read daily', async () => {
    await change('/changelog', 'human = human + 3000', `day IN ('2026-11-11', '2026-11-12')`);
    expect(await movers()).toEqual([]);
    await change('/changelog', 'human = human + 3000', `day = '2026-11-13'`);
    expect(await movers()).toMatchObject([{ path: '/changelog', audience: 'human' }]);
  });

  test('leaves out a page that got a new address', async () => {
    await change('/guides/webhooks', `path = '/guides/events', page = '/guides/events'`);
    expect(await movers()).toEqual([]);
    await change('/guides/events', 'human = human // 3');
    expect(await movers()).toMatchObject([{ path: '/guides/webhooks', human: 0 }]);
  });

  test('compares nothing across a break, of the site or of some pages', async () => {
    await change('/changelog', 'human = human * 2');
    await change('/guides/webhooks', 'human = human * 2');
    const note = (day: string, path: string) =>
      site().run(`DELETE FROM notes; INSERT INTO notes VALUES ('prj_1', '${day}', '', '${path}', true)`);
    await note('2026-11-09', '/guides/*');
    expect(await movers()).toMatchObject([{ path: '/changelog' }]);
    await note('2026-10-20', '/guides/*');
    expect(await movers()).toMatchObject([{ path: '/changelog' }]);
    await note('2026-10-12', '*');
    expect(await movers()).toHaveLength(2);
    await note('2026-10-20', '*');
    expect(await movers()).toEqual([]);
    await note('2026-11-16', '*');
    expect(await movers()).toHaveLength(2);
  });

  test('leaves out pages seen for fewer than three weeks, and weeks that are not fully loaded', async () => {
    await site().run(`INSERT INTO page_views
      SELECT 'prj_1', day::DATE, '/young', '/young', if(day >= '2026-11-09', 60, 10), 0, if(day >= '2026-11-09', 60, 10)
      FROM generate_series(DATE '2026-10-26', DATE '2026-11-15', INTERVAL 1 DAY) AS calendar (day)`);
    await loadDays(site());
    expect(await movers()).toEqual([]);
    await change('/changelog', 'human = human * 2');
    expect(await movers()).toHaveLength(1);
    await site().run(`DELETE FROM days WHERE day = '2026-11-12'`);
    expect(await movers()).toEqual([]);
  });

  test('lists nothing with fewer than three full weeks before', async () => {
    await change('/changelog', 'human = human * 2');
    await site().run(`DELETE FROM page_views WHERE day < '2026-10-19'`);
    await loadDays(site());
    expect(await movers()).toHaveLength(1);
    await site().run(`DELETE FROM page_views WHERE day < '2026-10-26'`);
    await loadDays(site());
    expect(await movers()).toEqual([]);
  });

  test('is one page when one page is spammed: the others do not fall', async () => {
    await change('/changelog', 'human = human + 20000');
    expect((await movers()).map(({ path }) => path)).toEqual(['/changelog']);
  });

  test('lists a page for the week in which it moves, and not again for the next', async () => {
    await change('/changelog', 'human = human * 3', `day >= '2026-11-02'`);
    await site().run(
      `UPDATE page_views SET human = human * 3 WHERE path = '/changelog' AND day BETWEEN '2026-11-02' AND '2026-11-08'`,
    );
    await loadDays(site());
    expect(await movers('2026-11-02')).toMatchObject([{ path: '/changelog' }]);
    expect(await movers('2026-11-09')).toEqual([]);
  });

  test('judges each project by its own pages', async () => {
    await change('/changelog', 'human = human * 2');
    const found = async () =>
      (await movers())
        .filter(({ project }) => project === 'prj_1')
        .map(({ path, human, human_high }) => [path, human, Math.round(human_high)]);
    const alone = await found();
    await site().run(`INSERT INTO page_views
      SELECT 'prj_2', day, path, page, human * if(day >= '2026-11-09', 5, 1), ai, total FROM page_views`);
    await loadDays(site());
    expect(await found()).toEqual(alone);
  });
});

describe('the usual range of a site', () => {
  const range = (week: string) =>
    site().reader.query(
      `FROM usual_range('${week}') WHERE audience = 'human'`,
      z.looseObject({ views: z.int(), low: z.int().nullable(), high: z.int().nullable() }),
    );
  /** Sites whose week, counted from 2025-09-01, has `views`; all its days are loaded. */
  const store = (views: string) =>
    site().run(`
      DELETE FROM days;
      INSERT INTO days BY NAME
      SELECT 'prj_1' AS project, day::DATE AS day, 'final' AS state, TIMESTAMP '2026-11-18' AS first_loaded_at,
        first_loaded_at AS loaded_at, loaded_at AS checked_at, (${views}) // 7 AS human, 0 AS ai, (${views}) // 7 AS total, 1 AS pages,
        0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
      FROM (
        SELECT unnest(generate_series(DATE '2025-09-01', DATE '2026-11-15', INTERVAL 1 DAY)) AS day,
          (day::DATE - DATE '2025-09-01') // 7 AS week, 1 + 0.03 * sin(5 * week) AS noise
      )`);

  test('follows the trend: growth is usual, so a higher week is not a record', async () => {
    await store('20000 * 1.03 ** week * noise');
    const [usual] = await range('2026-11-09');
    if (usual?.low == null || usual.high === null) throw new Error('no usual range');
    expect(usual).toMatchObject({ weeks_used: 8, weeks: 63, is_record: false });
    expect(usual.views).toBeGreaterThan(usual.low);
    expect(usual.views).toBeLessThan(usual.high);
    expect(usual.high / usual.low).toBeLessThan(1.5);
  });

  test('does not include a week that doubles, which is a record', async () => {
    await store('20000 * 1.03 ** week * noise * if(week = 62, 2, 1)');
    const [usual] = await range('2026-11-09');
    expect(usual).toMatchObject({ is_record: true });
    expect(usual?.views).toBeGreaterThan(usual?.high ?? Infinity);
  });

  test('shifts if the same week of last year was outside its own', async () => {
    await store('20000 * noise * if(week % 52 = 16, 0.4, 1)');
    const [holiday] = await range('2025-12-22');
    expect(holiday?.views).toBeLessThan(holiday?.low ?? 0);
    await store('20000 * noise * if(week % 52 = 10, 0.4, 1)');
    const [again] = await range('2026-11-09');
    expect(again?.views).toBeGreaterThanOrEqual(again?.low ?? Infinity);
    expect(again?.views).toBeLessThanOrEqual(again?.high ?? 0);
  });

  test('also judges who reads more: only a difference beyond its usual range has a leader', async () => {
    const leader = () =>
      rowsOf(
        site().reader,
        `SELECT DISTINCT leader, human_per_ai_low < human_per_ai_high AS is_range FROM usual_range('2026-11-09')`,
      );
    await store('20000 * noise');
    await site().run('UPDATE days SET ai = human * (1 + 0.02 * sin(dayofyear(day) * 3))');
    expect(await leader()).toEqual([{ leader: null, is_range: true }]);
    await site().run('UPDATE days SET ai = human * (1.2 + 0.02 * sin(dayofyear(day) * 3))');
    expect(await leader()).toEqual([{ leader: 'ai', is_range: true }]);
    await site().run(`UPDATE days SET ai = human * 0.5 WHERE day >= '2026-11-09'`);
    expect(await leader()).toEqual([{ leader: null, is_range: true }]);
    await site().run(`INSERT INTO notes VALUES ('prj_1', '2026-10-01', '', '*', true)`);
    expect(await leader()).toEqual([{ leader: null, is_range: null }]);
  });

  test('is unknown with fewer than eight full weeks before, and of a week not fully loaded', async () => {
    await store('20000 * noise');
    expect(await range('2025-10-20')).toMatchObject([{ low: null, high: null, weeks: 8, is_record: false }]);
    expect(await range('2025-10-27')).toMatchObject([{ weeks_used: 8, weeks: 9 }]);
    await site().run(`DELETE FROM days WHERE day = '2026-11-12'`);
    expect(await range('2026-11-09')).toEqual([]);
  });
});

test.each([
  { name: 'quiet', least: 0.6 },
  { name: 'Christmas', least: 0.3 },
  { name: 'bots on 2% of the pages, two nights', least: 0.5 },
  // One or two pages can be judged.
  { name: 'hardly any views', sites: 40, most: 0.15, least: 0.2 },
])('in simulated sites lists moved pages, and hardly any others: $name', async (of) => {
  const { name, least, sites = 8, most = 0.5 } = of;
  const scenario = SCENARIOS.find((one) => one.name === name) ?? expect.fail(`no scenario ${name}`);
  const found = await backtest(scenario, { sites, firstSeed: 1 });
  expect(found.any).toBeLessThan(most);
  expect(found.precision).toBeGreaterThan(0.7);
  expect(found.recall).toBeGreaterThan(least);
});
