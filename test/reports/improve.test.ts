import { afterEach, beforeEach, expect, test } from 'vitest';
import { renderReport } from '../../src/reports/render.js';
import { siteHistory, type TestHistory } from './history.js';

let history: TestHistory;
beforeEach(async () => {
  history = await siteHistory({ pages: 60 });
  await history.run(`
    INSERT INTO agent_jobs BY NAME
    SELECT *, 'prj_1' AS project, 'much read' AS reason, 'p' AS prompt, 0 AS polls, TIMESTAMP '2026-11-16' AS planned_at
    FROM (VALUES
      (1, '/quickstart', 'completed', 'https://github.com/acme/docs/pull/1', TIMESTAMP '2026-11-16', NULL),
      (2, '/changelog', 'completed', 'https://github.com/acme/docs/pull/2', TIMESTAMP '2026-11-10', NULL),
      (3, '/guides/webhooks', 'failed', NULL, TIMESTAMP '2026-11-16', 'The repository is read-only')
    ) AS job (id, path, state, pr_link, ended_at, note)`);
  await history.run(`
    INSERT INTO page_choices
    SELECT 'prj_1', path, TIMESTAMP '2026-11-17', FALSE, why, 1204, 870
    FROM (VALUES
      ('/quickstart', 'had job 1, ended 2026-11-16: less than 56 days ago'),
      ('/sdks/typescript', 'has job 4, active'),
      ('/sdks/python', 'excluded by improve.exclude')
    ) AS choice (path, why)`);
});
afterEach(() => {
  history.close();
});

async function textOf(): Promise<string> {
  const { text } = await renderReport({
    reader: history.reader,
    name: 'improve',
    project: { id: 'prj_1', name: 'Acme Docs' },
    now: new Date('2026-11-18T09:00:00Z'),
  });
  return text ?? '';
}

test('pull requests too recent to judge share one line with the date of the first verdict', async () => {
  const [, after = ''] = (await textOf()).split('AFTER EARLIER WORK\n');
  expect(after.split('\n')[0]).toBe('Too early to tell for 2 pages; the first from 14 Dec 2026.');
});

test('pages that have or had a job are not listed again as skipped', async () => {
  const [, skipped = ''] = (await textOf()).split('SKIPPED\n');
  expect(skipped.match(/^\/.*$/gm)).toEqual(['/sdks/python']);
});

test('a failed job is listed once, with its reason', async () => {
  const text = await textOf();
  expect(text).toContain('The repository is read-only');
  expect(text.match(/failed/gi)).toHaveLength(1);
});
