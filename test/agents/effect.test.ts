import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CHANGED_SITES, measuredEffects } from '../../bench/movers/effects.js';
import { effectWords, projectEffectRow, readEffects, togetherWords } from '../../src/agents/effect.js';
import { day } from '../../src/day.js';
import { emptyHistory, type TestHistory } from '../reports/history.js';
import { readingSql, steadyPages } from './reading.js';

let history: TestHistory;
beforeEach(async () => {
  history = await emptyHistory();
});
afterEach(() => {
  history.close();
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
  const [effect] = await readEffects(history.reader, PROJECT);
  if (effect === undefined) throw new Error('no effect');
  const [people, ai] = effect.audiences;
  return { effect, people, ai, words: effectWords(effect) };
}

describe('the effect of a change', () => {
  it('is measured separately for people and AI, against similar pages, over four full weeks on each side', async () => {
    await store();
    const { people, ai, words } = await onlyEffect();
    expect(people).toMatchObject({
      audience: 'human',
      verdict: 'more views',
      comparison_pages: 39,
      why: null,
    });
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
  });

  it('is too early to tell before four full weeks', async () => {
    await store("DATE '2026-10-21' AS merged_on");
    const { effect, words } = await onlyEffect();
    expect(effect).toMatchObject({ isTooEarly: true, merged_on: day('2026-10-21') });
    expect(words).toBe('too early: 1 more full week needed; merged on Oct 21, 2026');
  });

  it.each<[string, () => Promise<void>]>([
    [
      'only 3 of the 4 weeks before the change are fully loaded',
      () => store(MERGED, { first: '2026-09-14' }),
    ],
    ['too few views before the change', () => store(MERGED, { changed: { human: 0, ai: 0 } })],
    ['only 7 comparable pages; at least 8 are needed', () => store(MERGED, { pages: 7 })],
    [
      'not viewed in every one of the eight weeks',
      async () => {
        await store();
        await history.run(`DELETE FROM page_views WHERE path = '/changed' AND day >= '2026-10-26'`);
      },
    ],
    [
      'its views vary too much',
      async () => {
        await store();
        await history.run(
          `UPDATE page_views SET human = human * (1 + 9 * (hash(path, date_trunc('week', day)) % 3)), ai = human`,
        );
      },
    ],
  ])('has no verdict if %s', async (why, prepare) => {
    await prepare();
    const { people, words } = await onlyEffect();
    expect(people).toMatchObject({ verdict: 'cannot tell', why, low: null, high: null });
    expect(words).toContain(`cannot tell: ${why}`);
  });

  it('compares only with pages viewed in every week and not changed by an agent in those weeks', async () => {
    await store();
    await history.run(`
      DELETE FROM page_views WHERE path LIKE '/guides/page-_' AND day >= '2026-10-12';
      INSERT INTO agent_jobs BY NAME
      SELECT 1 + number AS id, '/guides/page-' || (10 + number) AS path, job.* EXCLUDE (id, path)
      FROM agent_jobs AS job, range(1, 31) AS numbers (number) WHERE job.id = 1`);
    const effects = await readEffects(history.reader, PROJECT);
    // Of 60 pages, 9 vanished, and 30 have their own jobs.
    expect(effects.find(({ job }) => job === 1)?.audiences[0]).toMatchObject({ comparison_pages: 21 });
  });

  it('is also given for all changes combined if there are six or more', async () => {
    await store();
    const together = () =>
      history.reader.query(`FROM project_effects ORDER BY audience DESC`, projectEffectRow);
    expect(await together()).toMatchObject([
      { changes: 1, verdict: 'cannot tell', low: null },
      { changes: 1 },
    ]);
    expect(togetherWords(await together())).toBeUndefined();
    await history.run(`
      INSERT INTO agent_jobs BY NAME
      SELECT 1 + number AS id, '/guides/page-' || number AS path, job.* EXCLUDE (id, path)
      FROM agent_jobs AS job, range(1, 8) AS numbers (number) WHERE job.id = 1;
      UPDATE page_views SET human = round(1.3 * human) WHERE day >= '2026-10-07' AND path IN (SELECT path FROM agent_jobs WHERE id > 1)`);
    const [people, ai] = await together();
    expect(people).toMatchObject({ changes: 8, verdict: 'more views' });
    expect(people?.ratio).toBeCloseTo(1.3, 1);
    expect(ai).toMatchObject({ changes: 8, verdict: 'no clear change' });
    expect(togetherWords(await together())).toMatch(
      /^All changed pages combined, compared with similar ones: people: more views, \+\d+% for 8 pages \(.*\); AI: no clear change, /,
    );
  });
});

it.each(CHANGED_SITES.filter(({ name, trueRatio }) => name !== 'lively' && trueRatio === 1))(
  'an effect is hardly ever reported without one, and no interval is wider than half to double: $name',
  async (site) => {
    const { clear, widest, untold } = await measuredEffects(site, { sites: 4, firstSeed: 1 });
    expect(clear).toBeLessThanOrEqual(0.06);
    expect(widest).toBeLessThanOrEqual(4);
    expect(untold).toBeLessThan(0.2);
  },
);

describe('pages losing people but not AI', () => {
  const leaving = () =>
    history.reader.query(
      `FROM people_leaving('2026-11-18')`,
      z.object({ path: z.string(), human_change: z.number(), ai_change: z.number(), z: z.number() }),
    );

  it('are those that people viewed less in the last eight weeks than in the eight before, while AI did not', async () => {
    await store(MERGED, { first: '2026-07-20' });
    const since = `day >= '2026-09-21'`;
    await history.run(`
      UPDATE page_views SET human = human // 2 WHERE path = '/guides/page-1' AND ${since};
      UPDATE page_views SET human = human // 2, ai = ai // 2 WHERE path = '/guides/page-2' AND ${since};
      UPDATE page_views SET ai = ai // 2 WHERE path = '/guides/page-3' AND ${since}`);
    const found = await leaving();
    expect(found.map(({ path }) => path)).toEqual(['/guides/page-1']);
    expect(found[0]?.human_change).toBeCloseTo(-0.5, 1);
    expect(found[0]?.ai_change).toBeCloseTo(0, 1);
    expect(found[0]?.z).toBeLessThan(-3);
  });

  it('are not reported without sixteen full weeks', async () => {
    await store(MERGED, { first: '2026-08-03' });
    await history.run(
      `UPDATE page_views SET human = human // 2 WHERE path = '/guides/page-1' AND day >= '2026-09-21'`,
    );
    expect(await leaving()).toEqual([]);
  });
});
