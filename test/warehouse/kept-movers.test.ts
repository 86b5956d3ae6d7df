import { beforeEach, expect, test } from 'vitest';
import { day } from '../../src/day.js';
import { keepMovers } from '../../src/warehouse/movers.js';
import { rowSchema } from '../../src/warehouse/query.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { liveWarehouse, rowsOf, valuesOf } from '../open-warehouse.js';
import { fillSite, loadDays, type TestHistory } from '../reports/history.js';

const WEEK = day('2026-11-09');

let warehouse: Warehouse;
let history: TestHistory;
beforeEach(async () => {
  warehouse = await liveWarehouse();
  history = {
    reader: warehouse,
    run: (sql) => warehouse.exclusive((connection) => connection.run(sql)),
  };
  await fillSite(history, { first: day('2026-08-31'), last: day('2026-11-15'), pages: 60 });
  await history.run("INSERT INTO page_views SELECT * REPLACE ('other' AS project) FROM page_views");
  await history.run(
    "UPDATE page_views SET human = human * 3, total = human * 3 + ai WHERE path = '/changelog' AND day >= '2026-11-09'",
  );
  await loadDays(history);
});

/** Rounded, because sums of the same numbers in another order differ in their last digits. */
const movers = (week: string = WEEK, options = '') =>
  warehouse.query(
    `SELECT project, path, audience, round(change, 6), human, round(ai_high, 6), weeks_seen, list_transform(human_weeks, lambda past: [past.week::VARCHAR, round(past.low, 6)::VARCHAR]) FROM movers('${week}'${options})`,
    rowSchema,
  );

/** Empties the kept answers, and returns the projects for which they are read nevertheless. */
async function projectsFromKept(): Promise<unknown[]> {
  await history.run('UPDATE kept_movers SET movers = []');
  const computed = `SELECT project FROM movers('${WEEK}')`;
  return valuesOf(
    warehouse,
    `SELECT DISTINCT project FROM page_views WHERE project NOT IN (${computed}) ORDER BY ALL`,
  );
}

test('what moved in the last two weeks is kept, and read as it was computed', async () => {
  const weeks = ['2026-11-02', WEEK];
  const computed = await Promise.all(weeks.map((week) => movers(week)));
  expect(computed[1]).toMatchObject([{ path: '/changelog' }, { path: '/changelog' }]);
  const ofOther = () => movers(WEEK, ", project_id := 'other'");
  expect(await ofOther()).toEqual([computed[1]?.[0]]);
  await keepMovers(warehouse, WEEK);
  expect(await ofOther()).toEqual([computed[1]?.[0]]);
  expect(await Promise.all(weeks.map((week) => movers(week)))).toEqual(computed);
  expect(await rowsOf(warehouse, 'SELECT DISTINCT week FROM kept_movers ORDER BY week')).toEqual(
    weeks.map((week) => ({ week })),
  );
  expect(await projectsFromKept()).toHaveLength(2);
});

test('what moved is computed once as long as nothing changes, and older weeks are forgotten', async () => {
  await keepMovers(warehouse, WEEK);
  await history.run('UPDATE kept_movers SET movers = []');
  await keepMovers(warehouse, WEEK);
  expect(await movers()).toEqual([]);
  await fillSite(history, { first: day('2026-11-16'), last: day('2026-11-29'), pages: 60 });
  await keepMovers(warehouse, day('2026-11-23'));
  expect(await rowsOf(warehouse, 'SELECT DISTINCT week FROM kept_movers ORDER BY week')).toEqual([
    { week: '2026-11-16' },
    { week: '2026-11-23' },
  ]);
});

test.each([
  [
    'a day of the week has other views',
    "UPDATE day_loads SET human = human + 1 WHERE day = '2026-11-11' AND project = 'other'",
  ],
  [
    'views of a day moved between pages',
    "INSERT INTO restatements SELECT project, day, TIMESTAMP '2026-11-17', 0, 0, 0, 0, 0, 0, 2 FROM day_loads WHERE day = '2026-09-01' AND project = 'other'",
  ],
  ['a day before is forgotten', "DELETE FROM day_loads WHERE day = '2026-10-01' AND project = 'other'"],
  ['counting changed for a page', "INSERT INTO notes VALUES ('other', '2026-10-01', 'b', '/a', true)"],
])('after %s, what moved is computed again for that project only', async (_, sql) => {
  await keepMovers(warehouse, WEEK);
  await history.run(sql);
  expect(await projectsFromKept()).toEqual(['prj_1']);
  await keepMovers(warehouse, WEEK);
  expect(await valuesOf(warehouse, `SELECT project FROM movers('${WEEK}')`)).toEqual(['other']);
});

test('nothing is kept of a week whose days are not all loaded', async () => {
  await history.run("DELETE FROM day_loads WHERE day = '2026-11-15'");
  await keepMovers(warehouse, WEEK);
  expect(await rowsOf(warehouse, 'SELECT DISTINCT week FROM kept_movers')).toEqual([{ week: '2026-11-02' }]);
});
