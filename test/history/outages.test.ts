import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readSettling } from '../../src/export/day-records.js';
import { rowsOf } from '../open-history.js';
import { emptyHistory, siteHistory, type TestHistory } from '../reports/history.js';
import { prepare } from '../reports/prepare.js';

/** 104 weeks of a site with forty pages, loaded night by night. */
const SITE = `
  INSERT INTO page_views
  SELECT 'prj_1', day::DATE, path, path, human, 0, human
  FROM
    generate_series(DATE '2024-11-18', DATE '2026-11-15', INTERVAL 1 DAY) AS days (day),
    range(40) AS pages (n),
    (SELECT format('/page-{}', n) AS path, 100 + hash(n, day) % 20 + if(isodow(day) > 5, 0, 40) AS human);
  INSERT INTO days BY NAME
  SELECT
    project, day, 'final' AS state, day + INTERVAL 26 HOUR AS first_loaded_at, first_loaded_at AS loaded_at,
    loaded_at AS checked_at, sum(human) AS human, sum(ai) AS ai, sum(total) AS total, count(*) AS pages,
    0 AS unattributed_human, 0 AS unattributed_ai, 0 AS unattributed_total, 0 AS nights_in_doubt
  FROM page_views GROUP BY project, day`;

let history: TestHistory;
beforeEach(async () => {
  history = await emptyHistory();
  await history.run(SITE);
});

/** The platform counted nothing on some days. */
async function empty(first: string, last: string): Promise<void> {
  await history.run(`
    DELETE FROM page_views WHERE day BETWEEN '${first}' AND '${last}';
    UPDATE days SET human = 0, ai = 0, total = 0, pages = 0 WHERE day BETWEEN '${first}' AND '${last}'`);
}

const rows = (sql: string) => rowsOf(history.reader, sql);
const outages = () =>
  rows(
    'SELECT min(day) AS first, max(day) AS last, count(*)::INTEGER AS days FROM site_days WHERE is_outage',
  );
const usual = async (week: string) => {
  const range = z.object({
    views: z.int(),
    low: z.int().nullable(),
    high: z.int().nullable(),
    weeks: z.int(),
  });
  const sql = `FROM usual_range('${week}') WHERE audience = 'human'`;
  const [found] = await history.reader.query(sql, range);
  return found ?? expect.fail('no row');
};

describe('an outage', () => {
  it('is a day without any view, whose weekday has them', async () => {
    expect(await outages()).toEqual([{ first: null, last: null, days: 0 }]);
    await empty('2026-10-01', '2026-10-18');
    expect(await outages()).toEqual([{ first: '2026-10-01', last: '2026-10-18', days: 18 }]);
    await empty('2025-01-01', '2025-10-31');
    // Longer than half a year on either side, none is how the site is.
    expect(await rows(`SELECT is_outage FROM site_days WHERE day IN ('2025-02-01', '2025-10-01')`)).toEqual([
      { is_outage: true },
      { is_outage: true },
    ]);
  });

  it('is no Saturday of a site that is read on workdays, and no day of a site with a few views', async () => {
    await history.run(
      'DELETE FROM page_views WHERE isodow(day) = 6; UPDATE days SET human = 0, total = 0 WHERE isodow(day) = 6',
    );
    expect(await outages()).toMatchObject([{ days: 0 }]);
    await history.run('UPDATE days SET human = 19, total = 19');
    await empty('2026-10-01', '2026-10-18');
    // Another site has more.
    await history.run(
      `INSERT INTO days SELECT * REPLACE ('prj_2' AS project, 900 AS human, 900 AS total) FROM days`,
    );
    expect(await outages()).toMatchObject([{ days: 0 }]);
  });

  it('is no day before the first views of a new site', async () => {
    await empty('2024-11-18', '2026-10-11');
    await empty('2026-10-20', '2026-10-20');
    expect(await outages()).toEqual([{ first: '2026-10-20', last: '2026-10-20', days: 1 }]);
  });

  it('is not known while the views of the last days may still come', async () => {
    await empty('2026-11-12', '2026-11-15');
    expect(await outages()).toMatchObject([{ days: 0 }]);
  });
});

describe('what is usual', () => {
  it('is the same after an outage of eighteen days, and unknown if fewer than eight weeks are left', async () => {
    const before = await usual('2026-11-09');
    expect(before.views).toBeGreaterThan(before.low ?? Infinity);
    expect(before.views).toBeLessThan(before.high ?? 0);
    await empty('2026-10-15', '2026-11-01');
    const after = await usual('2026-11-09');
    expect(after.low).toBeGreaterThan(0.9 * (before.low ?? Infinity));
    expect(after.high).toBeLessThan(1.1 * (before.high ?? 0));
    await empty('2026-10-01', '2026-11-08');
    expect(await usual('2026-11-09')).toMatchObject({ low: null, high: null });
    // The first week of an outage is below what is usual.
    const first = await usual('2026-10-05');
    expect(first.views).toBe(0);
    expect(first.low).toBeGreaterThan(20_000);
  });

  it('is the same for a page that moved', async () => {
    await history.run(`
      UPDATE page_views SET human = human * 3, total = total * 3 WHERE path = '/page-7' AND day >= '2026-11-09'`);
    const moved =
      'SELECT path, human, human_expected::INTEGER AS expected, weeks_seen::INTEGER AS weeks FROM movers($week)';
    const movers = (week: string) => rowsOf(history.reader, moved, { week });
    const [before] = await movers('2026-11-09');
    expect(before).toMatchObject({ path: '/page-7', weeks: 8 });
    await empty('2026-10-15', '2026-11-08');
    const [after] = await movers('2026-11-09');
    expect(after).toMatchObject({ path: '/page-7', weeks: 8 });
    expect(Number(after?.['expected'])).toBeCloseTo(Number(before?.['expected']), -2);
    expect(await movers('2026-10-19')).toEqual([]);
  });

  it('is what a day is compared with', async () => {
    await empty('2026-10-19', '2026-11-08');
    const usual = 'SELECT DISTINCT usual > 100 AS is_usual FROM day_differences($day)';
    expect(await rowsOf(history.reader, usual, { day: '2026-11-10' })).toEqual([{ is_usual: true }]);
    const changes = `SELECT days_before::INTEGER AS days_before, human_change FROM changes('2026-11-09', '2026-11-15', per := 'site')`;
    expect(await rows(changes)).toEqual([{ days_before: 0, human_change: null }]);
  });

  it('is what a day drops from, after an outage as before, and an outage is a drop', async () => {
    await empty('2026-09-01', '2026-10-25');
    await empty('2026-11-12', '2026-11-12');
    const dropped = `SELECT day, views::INTEGER AS views, expected > 5000 AS is_usual FROM dropped_days('2026-11-15') WHERE audience = 'human'`;
    expect(await rows(dropped)).toEqual([{ day: '2026-11-12', views: 0, is_usual: true }]);
  });
});

describe('how late views come', () => {
  const restate = (first: string, last: string, at: string) =>
    history.run(`
      INSERT INTO restatements
      SELECT 'prj_1', day, ${at}, ${at} - INTERVAL 24 HOUR, 0, human, 0, 0, 0, total, 40 FROM days WHERE day BETWEEN '${first}' AND '${last}'`);
  const delay = () => rows('SELECT delay_days, days_measured FROM data_delays');
  const settling = () => readSettling(history.reader, 'prj_1', new Date('2026-11-16T03:00Z'));

  it('is not learned from days without views, nor from when they were filled', async () => {
    expect(await delay()).toEqual([{ delay_days: 1, days_measured: 28 }]);
    await restate('2026-10-14', '2026-11-02', `TIMESTAMP '2026-11-12 02:00'`);
    expect(await delay()).toEqual([{ delay_days: 1, days_measured: 8 }]);
    expect(await settling()).toMatchObject({ restated_days: 0, oldest_change_days: null });
  });

  it('is learned from a platform whose days all come late', async () => {
    await restate('2026-10-01', '2026-11-13', 'day + INTERVAL 74 HOUR');
    expect(await delay()).toMatchObject([{ delay_days: 3 }]);
    expect(await settling()).toMatchObject({ oldest_change_days: 2 });
  });
});

describe('the weekly report', () => {
  const report = async () => {
    const { text, json } = await prepare({ reader: history.reader, name: 'weekly', period: '2026-W46' });
    return { text: text(), model: JSON.parse(json()) as Record<string, unknown> };
  };
  beforeEach(async () => {
    history = await siteHistory({ pages: 60 });
  });

  it('says the same after an outage of eighteen days, but compares with no day of it', async () => {
    const range = /usual 1[67]\.\dk–1[67]\.\dk/g;
    expect((await report()).text.match(range)).toHaveLength(2);
    await empty('2026-10-20', '2026-11-06');
    const { text } = await report();
    expect(text.match(range)).toHaveLength(2);
    expect(text).toContain('The week before had no views on Nov 2 – 6, so no change is shown.');
    expect(text).not.toContain('from the week before');
    expect(text).not.toContain('rose');
  });

  it('says why it calls nothing usual, and why no page moved', async () => {
    await empty('2026-10-01', '2026-11-08');
    await history.run(`DELETE FROM days WHERE day = '2026-09-22'`);
    const { text } = await report();
    expect(text).toContain(
      'Of the weeks before, six had days without any view and one is not fully loaded: five are left, too few to say what is usual.',
    );
    expect(text).not.toMatch(/above|below|usual \d/);
    await empty('2026-11-09', '2026-11-11');
    const { text: now, model } = await report();
    expect(now).toContain('No views were counted on Nov 9 – 11, so the pages that moved are not listed.');
    expect(model).toMatchObject({ moved: null });
  });
});
