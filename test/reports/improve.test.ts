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
    'Too early to tell for 2 pages; the first result is due on Dec 14, 2026.',
  );
});

test('a pull request not marked as merged is counted, and nothing is claimed about it', async () => {
  expect(await afterEarlierWork()).toBe(
    '1 pull request without a known merge date: record merges with readership jobs merged.',
  );
});

test('skipped pages are counted by reason in one line, without those that have or had a job', async () => {
  await history.run(`
    INSERT INTO page_choices BY NAME
    SELECT
      'prj_1' AS project, TIMESTAMP '2026-11-17' AS chosen_at, FALSE AS is_flagged, 1 AS weekly_human,
      1 AS weekly_ai, format('/few-{}', days) AS path, 'few-days' AS code, format('{{"days": {}}}', days) AS facts
    FROM range(2, 5) AS few (days)`);
  expect(await textOf()).toContain(
    '\nSkipped popular pages: 3 viewed on too few days, 1 excluded by improve.exclude. To list all of them: readership improve\n',
  );
});

test('pages that somebody skipped are counted together, regardless of their day', async () => {
  await history.run(`
    UPDATE page_choices SET code = 'skipped', facts = '{"until": "2026-12-01"}' WHERE path = '/sdks/python';
    INSERT INTO page_choices BY NAME
    SELECT * REPLACE ('/sdks/go' AS path, '{"until": null}' AS facts) FROM page_choices WHERE code = 'skipped'`);
  expect(await textOf()).toContain(
    '\nSkipped popular pages: 2 manually. To list all of them: readership improve\n',
  );
});

test('a pull request closed without being merged no longer awaits review, and its effect is not counted', async () => {
  expect(await textOf()).toContain('Review #1: https://github.com/acme/docs/pull/1');
  await history.run(`
    INSERT INTO pull_requests BY NAME
    SELECT unnest([1, 2]) AS job, TIMESTAMP '2026-11-17' AS checked_at, checked_at AS next_check_at, DATE '2026-11-17' AS closed_on`);
  const text = await textOf();
  expect(text).not.toContain('https://github.com/acme/docs/pull/1');
  expect(text).toContain('/quickstart\n  No change, flagged');
  expect(text).not.toContain('AFTER EARLIER WORK');
});

test('a pull request to review has its number and age, a failed job its reason and the next step', async () => {
  const text = await textOf();
  expect(text).toContain(`/quickstart
  Review #1: https://github.com/acme/docs/pull/1
  Job 1, flagged 6 days ago, ended 2 days ago
`);
  expect(text).toContain(`/guides/webhooks
  Job 3, flagged 6 days ago, ended 6 days ago
  The repository is read-only
  Once the cause is fixed, ask the agent to continue: readership jobs message 3
`);
});

test('each flagged page is listed once, with why, its age and what became of it', async () => {
  const [, flagged = ''] = (await textOf()).split('FLAGGED PAGES\n');
  expect(flagged.match(/^(?:\/| {2}\S+, flagged).*?(?=\. |$)/gm)).toEqual([
    ...['/quickstart', '  #1, flagged 6 days ago', '/changelog', '  #2, flagged 6 days ago'],
    ...['/guides/webhooks', '  Failed, flagged 6 days ago'],
  ]);
  expect(flagged).toContain('  Much read.\n');
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
