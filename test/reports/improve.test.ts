import { afterEach, beforeEach, expect, test } from 'vitest';
import { siteHistory, type TestHistory } from './history.js';
import { prepare } from './prepare.js';

let history: TestHistory;
beforeEach(async () => {
  history = await siteHistory({ pages: 60 });
  await history.run(`
    INSERT INTO agent_jobs BY NAME
    SELECT *, 'prj_1' AS project, 'much read' AS reason, 'p' AS prompt, 0 AS polls, TIMESTAMP '2026-11-12' AS planned_at
    FROM (VALUES
      (1, '/quickstart', 'completed', 'https://github.com/acme/docs/pull/1', TIMESTAMP '2026-11-16', NULL),
      (2, '/changelog', 'completed', 'https://github.com/acme/docs/pull/2', TIMESTAMP '2026-11-10', NULL),
      (3, '/guides/webhooks', 'failed', NULL, TIMESTAMP '2026-11-12', 'The repository is read-only')
    ) AS job (id, path, state, pr_link, ended_at, note)`);
  await history.run(`
    INSERT INTO page_choices BY NAME
    SELECT
      *, 'prj_1' AS project, TIMESTAMP '2026-11-17' AS chosen_at, FALSE AS is_flagged,
      1204 AS weekly_human, 870 AS weekly_ai
    FROM (VALUES
      ('/quickstart', 'had-job', '{"job": 1, "ended": "2026-11-16", "cooldown_days": 56}'),
      ('/sdks/typescript', 'has-job', '{"job": 4, "state": "active"}'),
      ('/sdks/python', 'excluded', '{}')
    ) AS choice (path, code, facts)`);
});
afterEach(() => {
  history.close();
});

async function textOf(): Promise<string> {
  const report = await prepare({
    reader: history.reader,
    name: 'improve',
    project: { id: 'prj_1', name: 'Acme Docs' },
    now: new Date('2026-11-18T09:00:00Z'),
  });
  return report.text();
}

async function afterEarlierWork(): Promise<string | undefined> {
  const [, after = ''] = (await textOf()).split('AFTER EARLIER WORK\n');
  return after.split('\n')[0];
}

test('pull requests too recent to judge share one line with the date of the first verdict', async () => {
  await history.run(`UPDATE agent_jobs SET merged_on = '2026-11-10' WHERE pr_link IS NOT NULL`);
  expect(await afterEarlierWork()).toBe(
    'Too early to tell for 2 pages; the first result is due on 14 Dec 2026.',
  );
});

test('a pull request that nobody said was merged is counted, and nothing is claimed of it', async () => {
  expect(await afterEarlierWork()).toBe(
    '1 pull request without a known merge: once merged, record it with readership jobs merged.',
  );
});

test('pages that have or had a job are not listed again as skipped', async () => {
  const [, skipped = ''] = (await textOf()).split('SKIPPED\n');
  expect(skipped.match(/^\/.*$/gm)).toEqual(['/sdks/python']);
});

test('a failed job is listed with its reason, and as failed once', async () => {
  const text = await textOf();
  expect(text).toContain('The repository is read-only');
  expect(text.match(/failed/gi)).toHaveLength(1);
});

test('an older period lists its own jobs only, and a merged one stays in the week of its merge', async () => {
  await history.run(`
    UPDATE agent_jobs SET planned_at = TIMESTAMP '2026-10-27', ended_at = TIMESTAMP '2026-10-28' WHERE id = 1;
    UPDATE agent_jobs SET merged_on = DATE '2026-11-03' WHERE id = 1`);
  const project = { id: 'prj_1', name: 'Acme Docs' };
  const now = new Date('2026-11-18T09:00:00Z');
  const of = async (period: string) =>
    (await prepare({ reader: history.reader, name: 'improve', project, period, now })).model;
  expect(await of('2026-W44')).toMatchObject({
    flagged: [{ id: 1 }],
    merged: [{ id: 1 }],
    ready: [],
    failed: [],
  });
  expect(await of('2026-W45')).toMatchObject({ flagged: [], merged: [{ id: 1 }], ready: [], failed: [] });
  expect(await of('2026-W46')).toMatchObject({ merged: [], ready: [{ id: 2 }], failed: [{ id: 3 }] });
});
