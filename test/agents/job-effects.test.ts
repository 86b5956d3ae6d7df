import { beforeEach, describe, expect, it } from 'vitest';
import { planJob } from '../../src/agents/jobs.js';
import { effectWords, readJobEffects, readJobsWithEffects } from '../../src/agents/job-effects.js';
import { emptyHistory, type TestHistory } from '../reports/history.js';
import { emptyState } from '../../src/state/open.js';
import { markMerged } from '../../src/state/jobs.js';
import { day } from '../../src/day.js';
import { jobFor, readingSql } from './reading.js';

const PROJECT = 'prj_sandbox';

let history: TestHistory;
beforeEach(async () => {
  history = await emptyHistory();
});

/**
 * `/changed` has 10 human and 30 AI views a day until it is merged on October 7, and then 20 and 30. On the day of the
 * merge itself, it has a thousand. The rest of the site has 30 and 70.
 */
async function store({ mergedOn = "DATE '2026-10-07'", last = '2026-11-15' } = {}): Promise<void> {
  const pages = [
    { path: '/changed', human: 10, ai: 30 },
    { path: '/other', human: 30, ai: 70 },
  ];
  await history.run(readingSql(pages, { first: '2026-08-03', last }));
  await history.run(`
    UPDATE page_views SET human = 20 WHERE path = '/changed' AND day > '2026-10-07';
    UPDATE page_views SET human = 1000 WHERE path = '/changed' AND day = '2026-10-07';
    INSERT INTO agent_jobs BY NAME
    SELECT 1 AS id, '${PROJECT}' AS project, '/changed' AS path, 'completed' AS state, '' AS reason, '' AS prompt,
      TIMESTAMP '2026-09-06 04:00:00' AS planned_at, TIMESTAMP '2026-10-01 04:00:00' AS ended_at,
      'https://code.example.com/1' AS pr_link, 0 AS polls, ${mergedOn} AS merged_on`);
  await settleTotals();
}

/** Makes the totals of the days those of their rows. */
const settleTotals = () =>
  history.run(`
    UPDATE days SET human = views.human, ai = views.ai
    FROM (SELECT day, sum(human) AS human, sum(ai) AS ai FROM page_views GROUP BY day) AS views WHERE views.day = days.day`);

async function onlyEffect() {
  const [effect = expect.fail('no effect')] = await readJobEffects(history.reader, PROJECT);
  return effect;
}

describe('after a merge', () => {
  it('the four weeks before and after it are compared, without its day and beside the site', async () => {
    await store();
    const effect = await onlyEffect();
    const human = { before: 70, after: 140, change: 1, siteChange: 0.25 };
    const ai = { before: 210, after: 210, change: 0, siteChange: 0 };
    expect(effect).toEqual({ job: 1, path: '/changed', mergedOn: '2026-10-07', weeksAfter: 4, human, ai });
    expect(effectWords(effect)).toBe(
      'weekly views before and after the merge on Oct 7, 2026: people 70 → 140 (+100%, site +25%); AI 210 → 210 (0%, site 0%)',
    );
  });

  it('only whole weeks that are over count, and the words say how many', async () => {
    await store({ last: '2026-10-22' });
    await history.run("UPDATE page_views SET human = 5000 WHERE day > '2026-10-21'");
    const effect = await onlyEffect();
    expect(effect).toMatchObject({ weeksAfter: 2, human: { before: 70, after: 140, change: 1 } });
    expect(effectWords(effect)).toContain('the merge on Oct 7, 2026 (2 of 4 weeks so far): people');
  });

  it('nothing is compared before a week is over', async () => {
    await store({ last: '2026-10-13' });
    const effect = await onlyEffect();
    expect(effect).toMatchObject({ weeksAfter: 0, human: { before: 70, after: null, change: null } });
    expect(effectWords(effect)).toBe('no full week has passed since the merge on Oct 7, 2026');
    // A merge after the last loaded day.
    await history.run("UPDATE agent_jobs SET merged_on = '2026-10-20'");
    expect((await onlyEffect()).weeksAfter).toBe(0);
  });

  it('days that are not loaded are left out, so they are not zeros', async () => {
    await store();
    const missing = "day BETWEEN '2026-10-10' AND '2026-10-20'";
    await history.run(`DELETE FROM page_views WHERE ${missing}; DELETE FROM days WHERE ${missing}`);
    expect((await onlyEffect()).human).toEqual({ before: 70, after: 140, change: 1, siteChange: 0.25 });
    await history.run("DELETE FROM days WHERE day < '2026-10-07'");
    const { human } = await onlyEffect();
    expect(human).toEqual({ before: null, after: 140, change: null, siteChange: null });
  });

  it('a page without earlier views has no change, and a day without views counts as one', async () => {
    await store();
    await history.run("DELETE FROM page_views WHERE path = '/changed' AND day < '2026-10-22'");
    await settleTotals();
    const effect = await onlyEffect();
    expect(effect.human).toMatchObject({ before: 0, after: 70, change: null });
    expect(effectWords(effect)).toContain('people 0 → 70 (site +');
  });

  it.each([
    ['/ch*', '2026-10-20', { change: null, siteChange: null }],
    ['/other', '2026-10-20', { change: 1, siteChange: null }],
    ['*', '2026-09-08', { change: 1, siteChange: 0.25 }],
    ['*', '2026-11-05', { change: 1, siteChange: 0.25 }],
  ])('nothing is compared across a break of %s on %s', async (pattern, on, expected) => {
    await store();
    await history.run(`INSERT INTO notes VALUES ('${PROJECT}', '${on}', 'A filter', '${pattern}', true)`);
    expect((await onlyEffect()).human).toMatchObject(expected);
  });

  it('is said of each merged job, also of one without a pull request, the newest first', async () => {
    await store();
    await history.run('UPDATE agent_jobs SET pr_link = NULL');
    const effect = effectWords(await onlyEffect());
    const state = emptyState();
    await state.transaction(() => {
      for (const path of ['/changed', '/other'])
        planJob(state, jobFor(path, new Date('2026-09-06T04:00:00Z'), { project: PROJECT }));
      markMerged(state, 1, day('2026-10-07'));
    });
    const jobs = await readJobsWithEffects(state, history.reader, PROJECT);
    expect(jobs).toMatchObject([
      { id: 2, effect: null },
      { id: 1, effect },
    ]);
  });
});
