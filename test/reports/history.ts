import { DuckDBInstance } from '@duckdb/node-api';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { day, type Day } from '../../src/day.js';
import { pageOf } from '../../src/page.js';
import { queryRows, type Reader } from '../../src/history/duckdb.js';
import { afterFile } from '../cleanup.js';
import { EMPTY_HISTORY } from '../../src/history/history.js';
import { STORE_VIEWS } from '../open-history.js';
import { tempDir } from '../temp-dir.js';

const textOf = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');

/** The tables from which tests make up jobs. */
export const MADE_UP_TABLES = textOf('made-up-jobs.sql');

const REFERENCE = 'substr(sha256(concat_ws(chr(10), project, path, epoch_ms(planned_at))), 1, 12)';

/** The jobs in them, as the state gives its own to the history. */
export const MADE_UP_JOBS = textOf('../../src/state/statements/jobs-for-analysts.sql')
  .replace('FROM jobs', `FROM (SELECT *, ${REFERENCE} AS reference FROM agent_jobs) AS jobs`)
  .replaceAll('FROM messages', 'FROM agent_messages AS messages');

/** An in-memory history that reports read and tests write. */
export interface TestHistory {
  readonly reader: Reader;
  run(sql: string): Promise<unknown>;
}

/** The real tables and views, empty, until the tests of the file are over. */
export async function emptyHistory(): Promise<TestHistory> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run(`ATTACH '${EMPTY_HISTORY}' AS empty (READ_ONLY)`);
  await connection.run('COPY FROM DATABASE empty TO memory');
  await connection.run('DETACH empty');
  await connection.run(`${MADE_UP_TABLES} DROP TABLE jobs; CREATE OR REPLACE VIEW jobs AS ${MADE_UP_JOBS}`);
  afterFile(() => {
    connection.closeSync();
    instance.closeSync();
  });
  return {
    reader: { query: (sql, row, parameters) => queryRows(connection, sql, row, parameters) },
    run: async (sql) => {
      // For the statement, a table, so that tests can change it.
      const isOfViews = sql.includes('page_views');
      if (isOfViews) await connection.run('CREATE TEMP TABLE page_views AS FROM main.page_views');
      await connection.run(sql);
      if (isOfViews) await connection.run(STORE_VIEWS);
    },
  };
}

/**
 * A site whose human traffic follows a weekly pattern and whose AI traffic grows until it overtakes
 * human traffic in the week of November 9, 2026. Deterministic: the noise is a hash of page and
 * day.
 */
export async function siteHistory({
  first = day('2026-05-18'),
  last = day('2026-11-15'),
  pages = 450,
}: { first?: Day; last?: Day; pages?: number } = {}): Promise<TestHistory> {
  const history = await emptyHistory();
  await fillSite(history, { first, last, pages });
  return history;
}

/** Fills the tables of a history with that site. */
export async function fillSite(
  history: TestHistory,
  { first, last, pages }: { first: Day; last: Day; pages: number },
): Promise<void> {
  await history.run(siteSql(first, last, pages));
  await loadDays(history);
}

const TOP_PAGES = [
  '/quickstart /api-reference/authentication /guides/webhooks /api-reference/errors /sdks/typescript',
  '/changelog /guides/rate-limits /concepts/projects /llms-full.txt /api-reference/openapi',
].flatMap((pages) => pages.split(' '));

const siteSql = (first: Day, last: Day, pages: number): string => `
  INSERT INTO page_views
  WITH page AS (
    SELECT
      n,
      coalesce(list_extract([${TOP_PAGES.map((path) => `'${path}'`).join(', ')}], n), format('/reference/page-{}', n)) AS path,
      1 / pow(n + 2, 0.92) AS weight,
      0.55 + 0.9 * (hash(n) % 1000) / 1000 AS ai_leaning
    FROM range(1, ${pages} + 1) AS pages (n)
  ),
  cell AS (
    SELECT
      page.*,
      calendar.day::DATE AS day,
      0.8 + 0.4 * (hash(n * 7919 + epoch(calendar.day)::BIGINT) % 1000) / 1000 AS human_noise,
      0.75 + 0.5 * (hash(n * 104729 + epoch(calendar.day)::BIGINT) % 1000) / 1000 AS ai_noise,
      if(isodow(calendar.day) > 5, 0.56, 1.1) AS rhythm,
      date_diff('day', calendar.day::DATE, DATE '2026-11-15') AS days_ago
    FROM page, generate_series(DATE '${first}', DATE '${last}', INTERVAL 1 DAY) AS calendar (day)
    WHERE n <= ${pages} - 6 OR calendar.day >= DATE '2026-11-10'
  ),
  counted AS (
    SELECT
      day,
      path,
      round(650 * weight * rhythm * human_noise)::BIGINT AS human,
      round(690 * exp(-0.0054 * days_ago) * weight * ai_leaning * (0.4 + 0.6 * rhythm) * ai_noise)::BIGINT AS ai
    FROM cell
  )
  SELECT 'prj_1', day, path, path, human, ai, human + ai FROM counted WHERE human + ai > 0`;

/** That site for all tests of a file, each of which changes it for itself. */
export function sharedSite(of: Parameters<typeof siteHistory>[0], fill = ''): () => TestHistory {
  let history: TestHistory | undefined;
  const shared = () => history ?? expect.fail('it is filled before the first test');
  beforeAll(async () => {
    history = await siteHistory(of);
    await history.run(fill);
  });
  beforeEach(() => shared().run('BEGIN'));
  afterEach(() => shared().run('ROLLBACK'));
  return shared;
}

/** What a server counted: for each day, the views by path. */
export type CountedSite = Map<Day, Map<string, { readonly human: number; readonly ai: number }>>;

/** A history with these views. A day without any counts as not loaded. */
export async function historyOf(site: CountedSite): Promise<TestHistory> {
  const history = await emptyHistory();
  const file = join(await tempDir(), 'views.csv');
  const rows = [...site].flatMap(([date, views]) =>
    [...views].map(
      ([path, { human, ai }]) => `prj_1,${date},${path},${pageOf(path)},${human},${ai},${human + ai}\n`,
    ),
  );
  await writeFile(file, rows);
  await history.run(`COPY page_views FROM '${file}' (FORMAT csv, HEADER false)`);
  await loadDays(history);
  return history;
}

/** Marks every day that has views in the tables as loaded and settled. */
export const loadDays = (history: TestHistory): Promise<unknown> =>
  history.run(`
    DELETE FROM days;
    INSERT INTO days BY NAME
    SELECT
      project, day, 'final' AS state,
      TIMESTAMP '2026-11-18 02:00:00' AS first_loaded_at, first_loaded_at AS loaded_at, loaded_at AS checked_at,
      sum(human) AS human, sum(ai) AS ai, sum(total) AS total, count(*) AS pages,
      0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
    FROM page_views GROUP BY ALL`);

/**
 * Fills a history with a small site whose days are loaded with gaps, as a backfill leaves them: pages come and go, some
 * loaded days have no views, and some site totals hold views of no page.
 */
export async function fillSiteWithGaps(history: TestHistory, seed: number): Promise<void> {
  const chance = (...of: string[]) => `(hash(${[seed, ...of].join(', ')}) % 1000 / 1000)`;
  await history.run(`
    INSERT INTO days BY NAME
    SELECT
      'prj_1' AS project, day, if(${chance('day', '1')} < 0.1, 'provisional', 'final') AS state,
      TIMESTAMP '2026-11-18 02:00:00' AS first_loaded_at, first_loaded_at AS loaded_at, loaded_at AS checked_at, 0 AS human, 0 AS ai, 0 AS total, 0 AS pages, 0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
    FROM (SELECT unnest(generate_series(DATE '2025-09-01', DATE '2026-11-15', INTERVAL 1 DAY))::DATE AS day)
    WHERE
      -- Whole weeks are missing, single days, and what a backfill has not reached.
      ${chance("date_trunc('week', day)", '2')} > ${(seed % 4) * 0.1}
      AND ${chance('day', '3')} > ${(seed % 3) * 0.1}
      AND day >= DATE '2025-09-01' + ${(seed % 5) * 90};
    INSERT INTO page_views
    SELECT 'prj_1', day, path, path, human, ai, human + ai
    FROM (
      SELECT
        day, format('/{}/page-{}', ['docs', 'api', 'blog'][n % 3 + 1], n) AS path,
        floor(200 / (n + 1) * (0.5 + ${chance('n', 'day')}))::BIGINT AS human,
        floor(100 / (n % 7 + 1) * ${chance('day', 'n', '4')})::BIGINT AS ai
      FROM (FROM days WHERE project = 'prj_1') CROSS JOIN range(40) AS pages (n)
      WHERE
        day BETWEEN DATE '2025-09-01' + (${chance('n', '5')} * 400 - 100)::INTEGER
        AND DATE '2026-11-15' - (${chance('n', '6')} * 400 - 300)::INTEGER
        AND ${chance('day', '7')} > 0.03
    )
    WHERE human + ai > 0;
    UPDATE days SET human = sums.human, ai = sums.ai + ${seed % 2}, total = sums.total + ${seed % 2}, pages = sums.pages
    FROM (SELECT day, sum(human) AS human, sum(ai) AS ai, sum(total) AS total, count(*) AS pages FROM page_views WHERE project = 'prj_1' GROUP BY day) AS sums
    WHERE project = 'prj_1' AND sums.day = days.day`);
}
