import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { emptyHistory, loadDays, type TestHistory } from '../reports/history.js';

const anyRow = z.record(z.string(), z.union([z.string(), z.number(), z.null()]));

/**
 * Two projects, thirteen weeks across a new year, a day with no views, and pages viewed only on
 * some days, every third one at two addresses.
 */
const VIEWS = `
  INSERT INTO page_views
  SELECT
    project,
    day::DATE,
    page || ending,
    page,
    human,
    ai,
    human + ai
  FROM (
    SELECT
      format('prj_{}', p) AS project,
      day,
      format('/page-{}', n) AS page,
      ending,
      (hash(n, p, day::DATE, ending) % 50)::BIGINT AS human,
      (hash(day::DATE, n, p, ending) % 40)::BIGINT AS ai
    FROM
      range(1, 3) AS projects (p), range(40) AS pages (n), (VALUES (''), ('/'), ('.md')) AS endings (ending),
      generate_series(DATE '2025-11-05', DATE '2026-02-10', INTERVAL 1 DAY) AS days (day)
    WHERE
      (n + p + epoch(day)::BIGINT // 86400) % 3 <> 0 AND NOT (p = 2 AND day = DATE '2025-12-25')
      AND if(n % 3 = 1, ending <> '', ending = '')
  )`;

/** The views of each page on each day, at all of its addresses. */
const DAYS_OF_PAGES = `
  SELECT project, day, '/' || split_part(replace(path, '.md', '/'), '/', 2) AS path,
    sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(total)::BIGINT AS total
  FROM page_views GROUP BY ALL`;

/**
 * A loaded day with no views, a failed day with nothing stored, and a failed day with stored rows.
 */
const ODD_DAYS = `
  INSERT INTO days VALUES
    ('prj_2', '2025-12-25', 'final', '2026-01-01', '2026-01-01', '2026-01-01', 0, 0, 0, 0, 0, 0, 0, NULL, 0);
  INSERT INTO day_failures VALUES
    ('prj_2', '2026-02-11', '2026-02-12', 'cut off', 1), ('prj_1', '2026-02-10', '2026-11-19', 'cut off', 1)`;

/** The filters of all scans of a table in a query plan. */
function scansOf(plan: unknown, table: string): string[] {
  if (Array.isArray(plan)) return plan.flatMap((node) => scansOf(node, table));
  const node = planNode.parse(plan);
  const { Table: scanned = '', Filters: filters = [] } = node.extra_info;
  const own = scanned.endsWith(`.${table}`) ? [[filters].flat().join()] : [];
  return [...own, ...scansOf(node.children, table)];
}

const planNode = z.object({
  children: z.array(z.unknown()),
  extra_info: z.object({ Table: z.string(), Filters: z.union([z.string(), z.array(z.string())]) }).partial(),
});

describe('views and macros return the numbers of independent SQL', () => {
  let history: TestHistory;
  beforeAll(async () => {
    history = await emptyHistory();
    await history.run(VIEWS);
    await loadDays(history);
    await history.run(ODD_DAYS);
  });
  const rows = (sql: string) => history.reader.query(sql, anyRow);

  it.each([
    "changes('2026-01-05', '2026-01-11')",
    "changes('2026-01-05', '2026-01-11', project_id := 'prj_2')",
    "changes('2026-01-05', '2026-01-11', 364, per := 'section')",
    "top_pages('2026-01-05', '2026-01-11', project_id := 'prj_2')",
    "movers('2026-02-02', project_id := 'prj_2')",
  ])('FROM %s reads no row of a day that it does not need', async (asked) => {
    const plan = z.object({ explain_key: z.string(), explain_value: z.string() });
    const [explained] = await history.reader.query(`EXPLAIN (FORMAT json) FROM ${asked}`, plan);
    const filters = scansOf(JSON.parse(explained?.explain_value ?? ''), 'counts');
    expect(filters.length).toBeGreaterThan(0);
    for (const filter of filters) expect(filter).toContain('day');
  });

  it.each([
    "changes('2026-01-05', '2026-01-11'",
    "changes('2026-01-05', '2026-01-11', 7, per := 'section'",
    "changes('2026-01-05', '2026-01-11', per := 'site'",
    "top_pages('2026-01-05', '2026-01-11'",
    "usual_range('2026-02-02'",
  ])('FROM %s) has the same rows of a project if it is given', async (asked) => {
    const own = await rows(`SELECT columns(*)::VARCHAR FROM ${asked}, project_id := 'prj_2')`);
    expect(own).toEqual(await rows(`SELECT columns(*)::VARCHAR FROM ${asked}) WHERE project = 'prj_2'`));
    expect(own.length).toBeGreaterThan(0);
  });

  it.each([
    [
      'site_days',
      'SELECT project, day, human, ai, total, pages FROM site_days ORDER BY ALL',
      `SELECT project, day, coalesce(sum(human), 0)::BIGINT AS human, coalesce(sum(ai), 0)::BIGINT AS ai,
         coalesce(sum(total), 0)::BIGINT AS total, count(path) AS pages
       FROM (SELECT project, day FROM page_views UNION SELECT 'prj_2', DATE '2025-12-25')
       LEFT JOIN page_views USING (project, day) GROUP BY ALL ORDER BY ALL`,
    ],
    [
      'site_weeks',
      'SELECT project, week, iso_week, human, ai, total, days_loaded FROM site_weeks ORDER BY ALL',
      `WITH dated AS (SELECT *, day - (isodow(day) - 1)::INTEGER AS week FROM page_views)
       SELECT project, week,
         format('{:04d}-W{:02d}', isoyear(week + 3), week(week + 3)) AS iso_week,
         sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(total)::BIGINT AS total,
         count(DISTINCT day) + (project = 'prj_2' AND week = DATE '2025-12-22')::BIGINT AS days_loaded
       FROM dated GROUP BY project, week ORDER BY ALL`,
    ],
    [
      'page_weeks',
      'SELECT project, week, path, human, ai, total, days_viewed FROM page_weeks ORDER BY ALL',
      `SELECT DISTINCT project, day - (isodow(day) - 1)::INTEGER AS week, path,
         (sum(human) OVER same)::BIGINT AS human, (sum(ai) OVER same)::BIGINT AS ai,
         (sum(total) OVER same)::BIGINT AS total, count(*) OVER same AS days_viewed
       FROM (${DAYS_OF_PAGES}) WINDOW same AS (PARTITION BY project, path, day - (isodow(day) - 1)::INTEGER) ORDER BY ALL`,
    ],
    [
      'top_pages',
      "SELECT project, path, human, ai, total FROM top_pages('2026-01-05', '2026-01-11') WHERE project = 'prj_1'",
      `SELECT project, path, list_sum(list(human))::BIGINT AS human, list_sum(list(ai))::BIGINT AS ai, list_sum(list(total))::BIGINT AS total
       FROM (${DAYS_OF_PAGES}) WHERE project = 'prj_1' AND day >= '2026-01-05' AND day < '2026-01-12'
       GROUP BY project, path ORDER BY total DESC, path`,
    ],
    [
      'page_history',
      "SELECT * FROM page_history('/page-7/index.html') ORDER BY ALL",
      `SELECT project, day, coalesce(max(human) FILTER (path = '/page-7'), 0) AS human,
         coalesce(max(ai) FILTER (path = '/page-7'), 0) AS ai, coalesce(max(total) FILTER (path = '/page-7'), 0) AS total
       FROM (${DAYS_OF_PAGES} UNION ALL SELECT 'prj_2', DATE '2025-12-25', '-', 0, 0, 0) GROUP BY ALL ORDER BY ALL`,
    ],
    [
      'page_addresses',
      "SELECT * FROM page_addresses('/page-7.md', '2026-01-05', '2026-01-11') ORDER BY ALL",
      `SELECT project, path, list_sum(list(human))::BIGINT AS human, list_sum(list(ai))::BIGINT AS ai, list_sum(list(total))::BIGINT AS total
       FROM page_views WHERE regexp_matches(path, '^/page-7(/|[.].*)?$') AND day >= '2026-01-05' AND day < '2026-01-12'
       GROUP BY project, path HAVING list_sum(list(human)) + list_sum(list(ai)) > 0 ORDER BY ALL`,
    ],
    [
      'human_vs_ai by month',
      "SELECT project, period, human, ai, days_loaded FROM human_vs_ai('2025-12-01', '2026-01-31', 'month') ORDER BY ALL",
      `SELECT project, make_date(year(day), month(day), 1) AS period, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai,
         count(DISTINCT day) + (project = 'prj_2' AND period = DATE '2025-12-01')::BIGINT AS days_loaded
       FROM page_views WHERE year(day) * 100 + month(day) IN (202512, 202601) GROUP BY project, period ORDER BY ALL`,
    ],
  ])('%s', async (_, view, independent) => {
    const expected = await rows(independent);
    expect(expected.length).toBeGreaterThan(3);
    expect(await rows(view)).toEqual(expected);
  });

  it('page_history of a page that was never viewed fails, and suggests similar pages', async () => {
    await expect(rows("FROM page_history('/pgae-7')")).rejects.toThrow(
      /page_history: no page \/pgae-7 was ever viewed; near it: \/page-7, \/page-/,
    );
    await expect(rows("FROM page_history('zzz')")).rejects.toThrow(/no page \/zzz was ever viewed$/);
  });

  it('the AI share is AI views over human and AI views, and NULL without views', async () => {
    const shares = await rows(
      'SELECT human, ai, ai_share FROM site_days UNION ALL SELECT human, ai, ai_share FROM site_weeks',
    );
    for (const { human, ai, ai_share } of shares) {
      const sum = Number(human) + Number(ai);
      if (sum === 0) expect(ai_share).toBeNull();
      else expect(ai_share).toBeCloseTo(Number(ai) / sum, 12);
    }
    expect(shares.filter(({ ai_share }) => ai_share === null)).toHaveLength(1);
  });

  it('a day whose reload failed keeps its numbers; a day never loaded has none', async () => {
    expect(await rows("SELECT state FROM site_days WHERE day = '2026-02-10' AND project = 'prj_1'")).toEqual([
      { state: 'final' },
    ]);
    expect(await rows("FROM site_days WHERE day = '2026-02-11'")).toEqual([]);
  });
});

describe('data_quality', () => {
  it('lists every finding for a day, and nothing for days without problems', async () => {
    const history = await emptyHistory();
    const load = (day: number, state: string, totals: string, rest = '0, 0, 0', problem = 'NULL') =>
      `INSERT INTO days VALUES ('p', '2026-01-0${day}', '${state}', '2026-01-09', '2026-01-09', '2026-01-09', ${totals}, 1, ${rest}, ${problem}, 0);`;
    await history.run(
      load(1, 'final', '2, 1, 3') +
        load(2, 'provisional', '2, 1, 3') +
        load(3, 'inconsistent', '2, 1, 3', '1, 0, 1', "'rows moved'") +
        load(4, 'final', '2, 1, 3') +
        "INSERT INTO day_failures VALUES ('p', '2026-01-04', '2026-01-10', 'cut off', 1), ('p', '2026-01-08', '2026-01-08', 'over', 1);" +
        load(6, 'final', '2, 1, 9') +
        load(7, 'final', '2, 1, 3', '0, -1, -1') +
        load(8, 'final', '2, 1, 3') +
        "INSERT INTO restatements VALUES ('p', '2026-01-08', '2026-01-09 03:04:00', '2026-01-08', 1, 2, 1, 1, 2, 3, 1)",
    );
    const found = await history.reader.query(
      'SELECT day, finding, detail FROM data_quality ORDER BY day, finding',
      z.object({ day: z.string(), finding: z.string(), detail: z.string() }),
    );
    expect(found.map(({ day, finding, detail }) => `${day.slice(-1)} ${finding}: ${detail}`)).toEqual([
      '2 provisional: may still change: loaded before it settled',
      '3 inconsistent: rows moved',
      '3 unattributed: +1 human, +0 AI in the site total that no page accounts for',
      '4 failed: cut off',
      '5 missing: never loaded',
      '6 total is not human + ai: total 9, human + ai 3',
      '7 unattributed: +0 human, -1 AI in the site total that no page accounts for',
      '8 restated: +1 views in 1 pages, seen 2026-01-09 03:04 UTC',
    ]);
  });
});
