import { beforeEach, describe, expect, it } from 'vitest';
import { CHANGED_SITES, measuredEffects } from '../../bench/movers/effects.js';
import {
  effectWords,
  experimentRow,
  experimentWords,
  jobEffects,
  projectEffectRow,
  readEffects,
  readJobsWithEffects,
  togetherWords,
} from '../../src/agents/effect.js';
import { day } from '../../src/day.js';
import { rowsOf } from '../open-warehouse.js';
import { emptyHistory, type TestHistory } from '../reports/history.js';
import { readingSql, steadyPages } from './reading.js';

let history: TestHistory;
beforeEach(async () => {
  history = await emptyHistory();
});

const PROJECT = 'prj_sandbox';
const MERGED = "DATE '2026-10-07' AS merged_on";

/**
 * `/changed` has been viewed by people twice as much since its pull request was merged. The other pages vary a little
 * from week to week, each in its own way.
 */
async function store(
  columns = MERGED,
  { pages = 60, changed = { human: 120, ai: 90 }, first = '2026-08-03', last = '2026-11-15' } = {},
): Promise<void> {
  await history.run(readingSql([...steadyPages(pages), { path: '/changed', ...changed }], { first, last }));
  await history.run(`
    UPDATE page_views SET
      human = round(human * (0.95 + 0.1 * (hash(path, date_trunc('week', day)) % 100) / 100)),
      ai = round(ai * (0.95 + 0.1 * (hash(date_trunc('week', day), path) % 100) / 100));
    UPDATE page_views SET human = 2 * human WHERE path = '/changed' AND day >= '2026-10-07';
    INSERT INTO agent_jobs BY NAME
    SELECT 1 AS id, '${PROJECT}' AS project, '/changed' AS path, 'completed' AS state, '' AS reason, '' AS prompt,
      TIMESTAMP '2026-09-06 04:00:00' AS planned_at, TIMESTAMP '2026-09-06 04:00:00' AS submitted_at,
      TIMESTAMP '2026-10-01 04:00:00' AS ended_at,
      'https://code.example.com/1' AS pr_link, 0 AS polls, ${columns}`);
}

async function onlyEffect() {
  const [effect = expect.fail('no effect')] = await readEffects(history.reader, PROJECT);
  const [people, ai] = effect.audiences;
  return { effect, people, ai, words: effectWords(effect) };
}

describe('the effect of a change', () => {
  it('is measured of a job without a pull request as well, once a person has said when it was merged', async () => {
    await store();
    await history.run('UPDATE agent_jobs SET pr_link = NULL');
    expect((await onlyEffect()).people).toMatchObject({ verdict: 'more views' });
  });

  it('is measured separately for people and AI, against similar pages, over four full weeks on each side', async () => {
    await store();
    const { people, ai, words } = await onlyEffect();
    expect(people).toMatchObject({ audience: 'human', verdict: 'more views', why: null });
    expect(people?.comparison_pages).toBe(39);
    expect(people?.ratio).toBeCloseTo(2, 0);
    expect(ai).toMatchObject({ audience: 'ai', verdict: 'no clear change' });
    expect(words).toMatch(
      /^people: more views, \+\d+% compared with 39 similar pages \(\+\d+% to \+\d+%\); AI: no clear change, .* \(−\d+% to \+\d+%\); merged on Oct 7, 2026$/,
    );
  });

  it('is not reported without a merge date', async () => {
    await store('NULL::DATE AS merged_on');
    const { people, words } = await onlyEffect();
    expect(people).toMatchObject({ verdict: 'cannot tell', ratio: null, low: null, high: null });
    expect(words).toBe('cannot tell: merge date unknown (record it: readership jobs merged 1)');
    expect(await readJobsWithEffects(history.reader, PROJECT)).toMatchObject([{ id: 1, effect: null }]);
  });

  it('is too early to tell before four full weeks', async () => {
    await store("DATE '2026-10-21' AS merged_on");
    const { effect, words } = await onlyEffect();
    expect(effect).toMatchObject({ isTooEarly: true, merged_on: day('2026-10-21') });
    expect(words).toBe('too early: 1 more full week needed; merged on Oct 21, 2026');
    // Another job, whose merge date is unknown, has none.
    await history.run(
      "INSERT INTO agent_jobs SELECT * REPLACE (2 AS id, '/other' AS path, NULL AS merged_on) FROM agent_jobs",
    );
    expect(await readJobsWithEffects(history.reader, PROJECT)).toMatchObject([
      { id: 2, effect: null },
      { id: 1, effect: words },
    ]);
  });

  it.each<[why: string, site: Parameters<typeof store>[1], sql?: string]>([
    ['only 3 of the 4 weeks before the change are fully loaded', { first: '2026-09-14' }],
    ['too few views before the change', { changed: { human: 0, ai: 0 } }],
    ['only 0 comparable pages; at least 8 are needed', { pages: 0 }],
    [
      'only 7 of the 12 weeks before the change are fully loaded; at least 8 are needed',
      { first: '2026-08-17' },
    ],
    [
      'counting changed on Sep 20, 2026',
      {},
      `INSERT INTO notes VALUES ('${PROJECT}', '2026-09-20', 'A filter', '/ch*', true)`,
    ],
    [
      'it fell before the change, and only 0 similar pages did; at least 19 are needed',
      {},
      `UPDATE page_views SET human = human // 2 WHERE path = '/changed' AND day BETWEEN '2026-09-07' AND '2026-10-06'`,
    ],
    [
      'not viewed in every one of the eight weeks',
      {},
      `DELETE FROM page_views WHERE path = '/changed' AND day >= '2026-10-26'`,
    ],
    [
      'its views vary too much',
      {},
      `UPDATE page_views SET human = human * (1 + 9 * (hash(path, date_trunc('week', day)) % 3)), ai = human`,
    ],
  ])('has no verdict if %s', async (why, site, sql) => {
    await store(MERGED, site);
    if (sql !== undefined) await history.run(sql);
    const { people, words } = await onlyEffect();
    expect(people).toMatchObject({ verdict: 'cannot tell', why, low: null, high: null });
    expect(words).toContain(`cannot tell: ${why}`);
  });

  it('compares only with pages viewed in every week and not changed by anyone in those weeks', async () => {
    await store();
    await history.run(`
      DELETE FROM page_views WHERE path LIKE '/guides/page-_' AND day >= '2026-10-12';
      INSERT INTO agent_jobs BY NAME
      SELECT 1 + number AS id, '/guides/page-' || (10 + number) AS path, job.* EXCLUDE (id, path)
      FROM agent_jobs AS job, range(1, 31) AS numbers (number) WHERE job.id = 1`);
    const compared = async () => {
      const effects = await readEffects(history.reader, PROJECT);
      return effects.find(({ job }) => job === 1)?.audiences[0]?.comparison_pages;
    };
    // Of 60 pages, 9 vanished, and 30 have their own jobs. Of the others, most have a similar course.
    expect(await compared()).toBeLessThanOrEqual(21);
    expect(await compared()).toBeGreaterThan(8);
    await history.run(`
      INSERT INTO page_changes SELECT DISTINCT '${PROJECT}', path, NULL, DATE '2026-10-15' FROM page_views
      WHERE path NOT IN ('/changed', '/guides/page-41')`);
    expect(await compared()).toBeLessThanOrEqual(1);
  });

  it('has a wider interval for a page that fell, in whichever of the sixteen weeks before', async () => {
    await store(MERGED, { first: '2026-06-15' });
    const widths = async () => {
      const { people, ai } = await onlyEffect();
      return [people, ai].map((row) => Math.log((row?.high ?? NaN) / (row?.low ?? NaN)));
    };
    const [human = NaN, machines = NaN] = await widths();
    for (const [factor, wider] of [
      [1.3, 1],
      [2, 1.2],
    ] as const) {
      await history.run(
        `UPDATE page_views SET human = ${factor} * human WHERE path = '/changed' AND day < '2026-07-13'`,
      );
      const [after, ofMachines] = await widths();
      expect(after).toBeCloseTo(wider * human, 9);
      expect(ofMachines).toBeCloseTo(machines, 9);
    }
    // As if every page varied from week to week by up to half.
    await history.run(
      "UPDATE page_views SET human = round(human * (0.5 + (hash(date_trunc('week', day), path) % 100) / 100))",
    );
    expect((await onlyEffect()).people).toMatchObject({
      verdict: 'cannot tell',
      why: 'it fell before the change, and pages of this site vary too much',
      ratio: null,
    });
  });

  it('is also given for all changes combined if there are six or more', async () => {
    await store();
    const together = () =>
      history.reader.query(`FROM project_effects ORDER BY audience DESC`, projectEffectRow);
    const cannotTell = { changes: 1, verdict: 'cannot tell', low: null };
    expect(await together()).toMatchObject([cannotTell, { changes: 1 }]);
    expect(togetherWords(await together())).toBeUndefined();
    await history.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT 1 + number AS id, '/guides/page-' || number AS path, job.* EXCLUDE (id, path)
      FROM agent_jobs AS job, range(1, 8) AS numbers (number) WHERE job.id = 1;
      UPDATE page_views SET human = round(1.3 * human) WHERE day >= '2026-10-07' AND path IN (SELECT path FROM agent_jobs WHERE id > 1)`);
    const [people, ai] = await together();
    expect(people?.verdict).toBe('more views');
    expect(people?.changes).toBeGreaterThanOrEqual(6);
    expect(people?.ratio).toBeCloseTo(1.3, 1);
    expect(ai?.verdict).toBe('no clear change');
    expect(togetherWords(await together())).toMatch(
      /^All changed pages combined, compared with similar ones: people: more views, \+\d+% for \d pages \(.*\); AI: no clear change, /,
    );
  });
});

describe('the words for effects', () => {
  const row = {
    ...{ job: 1, path: '/a', merged_on: '2026-10-07', weeks_after: 4, comparison_pages: 12, why: null },
    ...{ audience: 'human', verdict: 'more views', ratio: 1.25, low: 1.1, high: 1.4 },
  };
  const none = { verdict: 'too early', ratio: null, low: null, high: null };

  it('are grouped by job, and tell a merge from a change by people', () => {
    const ai = { ...row, audience: 'ai', ...none, weeks_after: 1 };
    const other = { ...row, job: -2, path: '/b', ...none, weeks_after: 2 };
    const effects = jobEffects.parse([row, ai, other, { ...other, audience: 'ai' }]);
    expect(effects.map(({ isTooEarly, audiences }) => [isTooEarly, audiences.length])).toEqual([
      [false, 2],
      [true, 2],
    ]);
    expect(effects.map((one) => effectWords(one))).toEqual([
      'people: more views, +25% compared with 12 similar pages (+10% to +40%); AI: too early: 3 more full weeks needed; merged on Oct 7, 2026',
      'too early: 2 more full weeks needed; changed by people on Oct 7, 2026',
    ]);
  });

  const measured = { audience: 'human', pairs: 12, verdict: 'more views' } as const;
  const people = { ...measured, ratio: 1.25, low: 1.1, high: 1.4 };
  const fewer = { audience: 'ai', verdict: 'fewer views' } as const;
  const machines = { ...people, ...fewer, ratio: 0.8, low: 0.7, high: 0.9 };
  const unclear = { verdict: 'no clear change' } as const;
  const young = { ...people, verdict: 'too early', pairs: 7 } as const;
  it.each([
    [[], undefined, ''],
    [[{ ...people, ...unclear, pairs: 0, ratio: null, low: null, high: null }], undefined, ''],
    [[young], false, 'Too early to tell whether agents help: 7 of 8 pairs of pages are measured.'],
    [
      [people, { ...machines, ...unclear }],
      true,
      'Pages that agents improved got 25% more human views (+10% to +40%) than their twins: 12 pairs drawn at random.',
    ],
    [
      [young, machines],
      true,
      'Pages that agents improved got 20% fewer AI views (−30% to −10%) than their twins: 12 pairs drawn at random.',
    ],
    [
      [
        { ...people, ...unclear, ratio: 1 },
        { ...machines, ...unclear },
      ],
      false,
      'No clear difference between pages that agents improved and their twins: 0% more human views (+10% to +40%) and 20% fewer AI views (−30% to −10%), 12 pairs drawn at random.',
    ],
  ])('of an experiment say what is clear: %#', (rows, isClear, words) => {
    expect(experimentWords(rows)).toEqual(isClear === undefined ? null : { isClear, words });
  });
});

it.each(CHANGED_SITES.filter(({ name, trueRatio }) => name !== 'lively' && trueRatio === 1))(
  'an effect is hardly ever reported without one, and no interval is wider than half to double: $name',
  async (site) => {
    const { clear, widest, untold } = await measuredEffects(site, { sites: 4, firstSeed: 1 });
    expect(clear).toBeLessThanOrEqual(0.08);
    expect(widest).toBeLessThanOrEqual(4);
    expect(untold).toBeLessThan(0.3);
  },
);

describe('an experiment', () => {
  /** Each pair's first page got a job that was merged on October 7, and is read `factor` times as much since. */
  async function draw(pairs: number, factor: number): Promise<void> {
    await store();
    await history.run(`
      DELETE FROM agent_jobs;
      INSERT INTO agent_jobs BY NAME
      SELECT pair AS id, '${PROJECT}' AS project, '/guides/page-' || (2 * pair) AS path, 'completed' AS state, '' AS reason,
        '' AS prompt, TIMESTAMP '2026-10-01 04:00:00' AS planned_at, 0 AS polls, 'https://code.example.com/1' AS pr_link, ${MERGED}
      FROM range(1, ${pairs + 1}) AS pairs (pair);
      INSERT INTO experiment_pairs
      SELECT '${PROJECT}', pair, TIMESTAMP '2026-10-01 04:00:00', '', '/guides/page-' || (2 * pair + other), other = 0, pair
      FROM range(1, ${pairs + 1}) AS pairs (pair), range(2) AS twins (other);
      UPDATE page_views SET human = round(${factor} * human) WHERE day >= '2026-10-07'
        AND path IN (SELECT path FROM experiment_pairs WHERE is_treated)`);
  }
  const effect = (basis = 'assigned') =>
    history.reader.query(
      `SELECT audience, pairs, verdict, ratio, low, high FROM experiment_effect WHERE basis = $basis ORDER BY audience DESC`,
      experimentRow,
      { basis },
    );
  const states = () =>
    rowsOf(
      history.reader,
      'SELECT pair, state, outcome, weeks_after, human_ratio FROM experiments ORDER BY pair',
    );

  it('finds what the drawn pages gained over their twins, for people and AI', async () => {
    await draw(12, 1.2);
    const [people, ai] = await effect();
    expect(people).toMatchObject({ audience: 'human', pairs: 12, verdict: 'more views' });
    expect(people?.ratio).toBeCloseTo(1.2, 1);
    expect(people?.low).toBeGreaterThan(1.1);
    expect(people?.high).toBeLessThan(1.3);
    expect(ai).toMatchObject({ audience: 'ai', verdict: 'no clear change' });
    const [first] = await states();
    expect(first).toMatchObject({ pair: 1, state: 'measured', outcome: 'merged', weeks_after: 5 });
  });

  it('is too early with fewer than eight pairs', async () => {
    await draw(7, 1.2);
    expect(await effect()).toMatchObject([{ pairs: 7, verdict: 'too early', low: null }, { pairs: 7 }]);
  });

  it('counts what was assigned, also if nothing was merged, and shows merged pairs separately', async () => {
    await draw(12, 1.2);
    await history.run(`
      UPDATE agent_jobs SET merged_on = NULL, pr_link = NULL, ended_at = '2026-10-02 05:00:00' WHERE id <= 3;
      UPDATE agent_jobs SET state = 'failed' WHERE id = 1;
      UPDATE agent_jobs SET merged_on = NULL WHERE id = 4;
      INSERT INTO pull_requests BY NAME SELECT 4 AS job, TIMESTAMP '2026-10-08' AS checked_at, TIMESTAMP '2026-10-09' AS next_check_at, DATE '2026-10-08' AS closed_on;
      UPDATE agent_jobs SET merged_on = NULL WHERE id = 5;
      UPDATE agent_jobs SET merged_on = NULL, state = 'failed' WHERE id = 6`);
    expect((await states()).slice(0, 7).map(({ outcome, state }) => [outcome, state])).toEqual([
      ['failed', 'measured'],
      ['no pull request', 'measured'],
      ['no pull request', 'measured'],
      ['closed', 'measured'],
      ['open', 'open'],
      // Its pull request waits for review, although the job failed after opening it.
      ['open', 'open'],
      ['merged', 'measured'],
    ]);
    expect(await effect()).toMatchObject([{ pairs: 10 }, { pairs: 10 }]);
    expect(await effect('merged')).toMatchObject([{ pairs: 6, verdict: 'too early' }, { pairs: 6 }]);
  });

  it('leaves out a pair whose twin a person chose, one across a break, one too young, and one with a page that is gone', async () => {
    await draw(10, 1.2);
    await history.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT 99 AS id, '/guides/page-3' AS path, TIMESTAMP '2026-10-20' AS planned_at, job.* EXCLUDE (id, path, planned_at)
      FROM agent_jobs AS job WHERE id = 1;
      INSERT INTO notes VALUES ('${PROJECT}', '2026-10-20', 'Moved', '/guides/page-4', true);
      UPDATE agent_jobs SET merged_on = '2026-10-21' WHERE id = 3;
      UPDATE page_views SET path = '/new', page = '/new' WHERE path = '/guides/page-9' AND day >= '2026-11-02'`);
    expect((await states()).slice(0, 5)).toMatchObject([
      { state: 'left', human_ratio: null },
      { state: 'not compared', human_ratio: null },
      { state: 'too early', weeks_after: 3 },
      { state: 'measured', human_ratio: null },
      { state: 'measured', human_ratio: expect.any(Number) as unknown },
    ]);
  });
});
