import { beforeEach, describe, expect, it } from 'vitest';
import { experimentRow, experimentWords } from '../../src/agents/experiment.js';
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

describe('the words for an experiment', () => {
  const measured = { audience: 'human', pairs: 12, verdict: 'more views' } as const;
  const people = { ...measured, ratio: 1.25, low: 1.1, high: 1.4 };
  const fewer = { audience: 'ai', verdict: 'fewer views' } as const;
  const machines = { ...people, ...fewer, ratio: 0.8, low: 0.7, high: 0.9 };
  const unclear = { verdict: 'no clear change' } as const;
  const young = { ...people, verdict: 'too early', pairs: 7 } as const;
  it.each([
    [[], null],
    [[{ ...people, ...unclear, pairs: 0, ratio: null, low: null, high: null }], null],
    [[young], 'Too early to tell whether agents help: 7 of 8 pairs of pages are measured.'],
    [
      [people, { ...machines, ...unclear }],
      'Pages with a job got 25% more human views (between +10% and +40%) than similar pages without one, in 12 pairs that chance picked.',
    ],
    [
      [young, machines],
      'Pages with a job got 20% fewer AI views (between −30% and −10%) than similar pages without one, in 12 pairs that chance picked.',
    ],
    [
      [
        { ...people, ...unclear, ratio: 1 },
        { ...machines, ...unclear },
      ],
      'No clear difference between pages with a job and similar pages without one, in 12 pairs that chance picked: 0% more human views (between +10% and +40%) and 20% fewer AI views (between −30% and −10%).',
    ],
  ])('say what is clear: %#', (rows, words) => {
    expect(experimentWords(rows)).toBe(words);
  });
});

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
  const effect = () => history.reader.query('FROM experiment_effect ORDER BY audience DESC', experimentRow);
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

  it('has no pair of two addresses of one page, which 0.3 could draw', async () => {
    await draw(9, 1.2);
    await history.run(`
      UPDATE experiment_pairs SET path = '/guides/page-2.md' WHERE pair = 1 AND NOT is_treated;
      UPDATE experiment_pairs SET path = '/guides/page-4/' WHERE pair = 2 AND is_treated`);
    expect((await states()).map(({ pair }) => pair)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await effect()).toMatchObject([{ pairs: 8 }, { pairs: 8 }]);
  });

  it('counts what was assigned, also if nothing was merged', async () => {
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

  it('frees the other page at the end of a job without a merge, and leaves out the pair once that has a job of its own', async () => {
    await draw(3, 1.2);
    await history.run(`
      UPDATE agent_jobs SET merged_on = NULL, pr_link = NULL, state = 'failed', ended_at = '2026-10-02 05:00:00' WHERE id <= 2;
      INSERT INTO agent_jobs BY NAME
      SELECT 99 AS id, '/guides/page-5' AS path, TIMESTAMP '2026-10-05' AS planned_at, job.* EXCLUDE (id, path, planned_at)
      FROM agent_jobs AS job WHERE id = 1`);
    const until = 'SELECT state, held_out_until::VARCHAR AS until FROM experiments ORDER BY pair';
    expect(await rowsOf(history.reader, until)).toEqual([
      { state: 'measured', until: '2026-10-02' },
      { state: 'left', until: '2026-10-02' },
      { state: 'measured', until: '2026-12-02' },
    ]);
  });
});
