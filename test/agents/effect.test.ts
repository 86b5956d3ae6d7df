import { afterEach, describe, expect, it } from 'vitest';
import { CALM, effectOfChange, LIVELY } from '../../bench/scenarios/changed-page.js';
import { type EffectSample, effectWords, measureEffect, readEffects } from '../../src/agents/effect.js';
import { day } from '../../src/day.js';
import { emptyHistory, type TestHistory } from '../reports/history.js';
import { type DailyReading, readingSql, steadyPages } from './reading.js';

/** Untouched pages whose reading stays within 10% of a common rise of 20%. */
const COMPARISON = Array.from({ length: 39 }, (_, index) => ({
  ...{ before: 10_000, after: Math.round(12_000 * (0.9 + (0.2 * index) / 38)) },
}));

const sample = (views_after: number, changes: Partial<EffectSample> = {}): EffectSample => ({
  ...{ weeks_before: 4, weeks_after: 4, views_before: 10_000, views_after, comparison: COMPARISON },
  ...changes,
});

describe('the effect of a change', () => {
  it.each([
    [18_000, 'more read', 1.5],
    [12_600, 'no clear change', 1.05],
    [12_000, 'no clear change', 1],
    [8_000, 'less read', 0.67],
  ])('%s views after 10,000, where others rose by 20%%: %s', (after, verdict, ratio) => {
    const effect = measureEffect(sample(after));
    expect(effect).toMatchObject({ verdict, comparisonPages: 39 });
    if (!('ratio' in effect)) throw new Error('no ratio');
    expect(effect.ratio).toBeCloseTo(ratio, 2);
    expect(effect.low).toBeLessThan(effect.ratio);
    expect(effect.high).toBeGreaterThan(effect.ratio);
    expect(verdict === 'no clear change').toBe(effect.low <= 1 && effect.high >= 1);
  });

  it.each<[Partial<EffectSample>, object]>([
    [{ weeks_after: 1 }, { verdict: 'too early', weeksMissing: 3 }],
    [{ weeks_before: 3 }, { verdict: 'cannot tell', why: 'only 3 of the 4 weeks before are loaded whole' }],
    [{ views_before: 5 }, { verdict: 'cannot tell', why: 'the page was read too little before' }],
    [
      { comparison: COMPARISON.slice(0, 18) },
      { verdict: 'cannot tell', why: 'there are 18 pages to compare with, and it takes 19' },
    ],
  ])('%o: %o', (changes, effect) => {
    expect(measureEffect(sample(20_000, changes))).toEqual(effect);
  });

  it.each([
    ['calm', CALM],
    ['lively', LIVELY],
  ])('where there is none, on a %s site, is reported in at most 1 of 20', (_, site) => {
    const verdicts = Array.from({ length: 400 }, (_, seed) => effectOfChange(seed, site, 1).verdict);
    const reported = verdicts.filter((verdict) => verdict !== 'no clear change');
    expect(reported.length / verdicts.length).toBeLessThanOrEqual(1 / 20);
  });

  it('where a page is read twice as much, on a calm site, is reported in at least 19 of 20', () => {
    const verdicts = Array.from({ length: 100 }, (_, seed) => effectOfChange(seed, CALM, 2).verdict);
    expect(verdicts.filter((verdict) => verdict === 'more read').length).toBeGreaterThanOrEqual(95);
  });
});

describe('the view job_effects', () => {
  let history: TestHistory;
  afterEach(() => {
    history.close();
  });

  const RANGE = { first: '2026-08-31', last: '2026-11-15' };
  const others = steadyPages(60);
  const changed: DailyReading = { path: '/changed', human: 120, ai: 50 };

  /** A job that completed in the week of 5 October, its page being read twice as much since. */
  async function historyWith(columns: string): Promise<TestHistory> {
    history = await emptyHistory();
    await history.run(readingSql([...others, changed], RANGE));
    await history.run(`
      UPDATE page_views SET human = 2 * human, ai = 2 * ai WHERE path = '/changed' AND day >= '2026-10-07';
      INSERT INTO agent_jobs BY NAME
      SELECT 1 AS id, 'prj_sandbox' AS project, '/changed' AS path, 'completed' AS state, '' AS reason, '' AS prompt,
        TIMESTAMP '2026-10-06 04:00:00' AS planned_at, TIMESTAMP '2026-10-06 04:00:00' AS submitted_at,
        'https://code.example.com/1' AS pr_link, 0 AS polls, ${columns}`);
    return history;
  }
  const ENDED = "TIMESTAMP '2026-10-07 04:00:00' AS ended_at";

  it('compares four whole weeks on each side of the week of the change', async () => {
    const { reader } = await historyWith(ENDED);
    const [effect] = await readEffects(reader, 'prj_sandbox');
    expect(effect).toMatchObject({
      ...{
        job: 1,
        counted_from: '2026-10-07',
        counted_from_is: 'completed',
        weeks_before: 4,
        weeks_after: 4,
      },
      ...{ views_before: 28 * 170, views_after: 28 * 340 },
      effect: { verdict: 'more read', comparisonPages: 39 },
    });
    expect(effect && effectWords(effect)).toBe(
      'more read: +100% beside 39 untouched pages (+100% to +100%); counted from 7 Oct 2026, when the job completed (readership jobs merged tells the merge)',
    );
  });

  it('counts from the merge when that is known, and says so', async () => {
    const { reader } = await historyWith(`${ENDED}, DATE '2026-10-21' AS merged_on`);
    const [effect] = await readEffects(reader, 'prj_sandbox');
    expect(effect).toMatchObject({ counted_from: day('2026-10-21'), effect: { verdict: 'too early' } });
    expect(effect && effectWords(effect)).toBe(
      'too early: 1 more whole week to come; counted from 21 Oct 2026, when it was merged',
    );
  });

  it('never compares with a page that agents touched in those weeks', async () => {
    await historyWith(ENDED);
    await history.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT 1 + number AS id, '/guides/page-' || number AS path, job.* EXCLUDE (id, path)
      FROM agent_jobs AS job, range(1, 31) AS numbers (number) WHERE job.id = 1`);
    const effects = await readEffects(history.reader, 'prj_sandbox');
    expect(effects.find(({ job }) => job === 1)?.effect).toMatchObject({ comparisonPages: 30 });
  });
});
