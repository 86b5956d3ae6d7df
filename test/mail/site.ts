import type { Day } from '../../src/day.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';

const VIEWS = `
  INSERT INTO page_views
  SELECT $project, day::DATE, '/page-' || page, 100 - page, 50 - page, 150 - 2 * page
  FROM generate_series($first::DATE, $last::DATE, INTERVAL 1 DAY) AS days (day), range(1, 9) AS pages (page)`;

const LOADS = `
  INSERT INTO day_loads BY NAME
  SELECT
    project, day, 'final' AS state, TIMESTAMP '2026-11-16 02:15:00' AS attempted_at,
    TIMESTAMP '2026-11-16 02:15:00' AS loaded_at, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai,
    sum(total)::BIGINT AS total, count(*) AS pages, 0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total
  FROM page_views WHERE project = $project AND day BETWEEN $first::DATE AND $last::DATE GROUP BY project, day`;

/** Loads days of a small site, both ends included. */
export const loadDays = (warehouse: Warehouse, first: Day, last: Day, project = 'prj_1'): Promise<void> =>
  warehouse.transaction(async (transaction) => {
    await transaction.execute(VIEWS, { first, last, project });
    await transaction.execute(LOADS, { first, last, project });
  });
