import { expect, test } from 'vitest';
import { plainText } from '../../src/format/chat.js';
import { sharedSite } from './history.js';
import { prepare } from './prepare.js';

const site = sharedSite(
  { pages: 60 },
  `
    INSERT INTO agent_jobs BY NAME
    SELECT *, 'prj_1' AS project, 'much read' AS reason, 'p' AS prompt, 0 AS polls, TIMESTAMP '2026-11-12' AS planned_at
    FROM (VALUES
      (1, '/quickstart', 'completed', 'https://github.com/acme/docs/pull/1', TIMESTAMP '2026-11-16', NULL),
      (2, '/changelog', 'completed', 'https://github.com/acme/docs/pull/2', TIMESTAMP '2026-11-10', NULL),
      (3, '/guides/webhooks', 'failed', NULL, TIMESTAMP '2026-11-12', 'The repository is read-only')
    ) AS job (id, path, state, pr_link, ended_at, note);
    INSERT INTO choices BY NAME
    SELECT
      *, 'prj_1' AS project, TIMESTAMP '2026-11-17' AS chosen_at, FALSE AS is_flagged,
      1204 AS weekly_human, 870 AS weekly_ai
    FROM (VALUES
      ('/quickstart', 'had-job', '{"job": 1, "ended": "2026-11-16", "cooldown_days": 56}'),
      ('/sdks/typescript', 'has-job', '{"job": 4, "state": "active"}'),
      ('/sdks/python', 'excluded', '{}')
    ) AS choice (path, code, facts)`,
);

const improve = (period?: string) => prepare({ reader: site().reader, name: 'improve', period });
const textOf = async () => (await improve()).text();

test('views before and after each merge are listed, with the change of the site, in every form of the report', async () => {
  await site().run(`
    UPDATE agent_jobs SET merged_on = '2026-10-10' WHERE id = 1;
    UPDATE agent_jobs SET merged_on = '2026-11-01' WHERE id = 2;
    UPDATE agent_jobs SET merged_on = '2026-11-13' WHERE id = 3`);
  const report = await improve();
  const [, text = ''] = report.text().split('AFTER THE MERGE\n');
  const views = /\d[\d,]* → \d[\d,]* \([+−]?\d+%, site [+−]?\d+%\)/.source;
  const page = (path: string, note: string) => `\n${path}\n  ${note}\n  Human: ${views}\n  AI: ${views}\n`;
  expect(text).toMatch(
    new RegExp(
      `^Weekly views in the four weeks before and after each merge.*\n\n/guides/webhooks\n  Job 3, merged on Nov 13, 2026: no full week has passed since\n  Human: \\d[\\d,]* → –\n  AI: \\d[\\d,]* → –\n` +
        page('/changelog', 'Job 2, merged on Nov 1, 2026: 2 of 4 weeks have passed since') +
        page('/quickstart', 'Job 1, merged on Oct 10, 2026'),
    ),
  );
  for (const html of [await report.page(), (await report.email()).html]) {
    const [, table = ''] = html.split('After the merge');
    expect(table.match(/site [+−]?\d+%/g)).toHaveLength(4);
  }
});

test('what a report says is as true on another day: the reported week and the states have dates', async () => {
  const relative = /\b(today|yesterday|\w+ (days?|weeks?) ago|less than a day|(this|last|previous) week)\b/i;
  for (const name of ['weekly', 'improve']) {
    const on = (now: string) =>
      prepare({ reader: site().reader, name, period: '2026-W46', now: new Date(`${now}T09:00Z`) });
    const [report, later] = [await on('2026-11-19'), await on('2027-01-20')];
    for (const form of [report.text(), await report.page(), (await report.email()).html])
      expect(form.replaceAll(/<style>[^]*?<\/style>/g, '')).not.toMatch(relative);
    expect(later.text()).toBe(report.text().replaceAll('Nov 19, 2026', 'Jan 20, 2027'));
  }
  expect(await textOf()).toContain('Week 46 · Mon, Nov 9 – Sun, Nov 15, 2026 · as of Nov 18, 2026\n');
});

test('the commands in it name the configuration, as they must be typed', async () => {
  await site().run(`
    UPDATE choices SET code = 'flagged', facts = '{"weekly_human": 1204, "weekly_ai": 870, "trend": 0.1, "rank": 3, "pages": 60, "weeks": 8}'
    WHERE path = '/sdks/python'`);
  const invocation = { config: 'staging.yaml' };
  const report = await prepare({ reader: site().reader, name: 'improve', invocation });
  const advice = 'readership improve --config staging.yaml --apply';
  expect(report.text()).toContain(`To create jobs for the flagged pages: ${advice}`);
  expect(await report.page()).toContain(advice);
  expect((await report.email()).text).toContain(advice);
});

test('a merge is listed for twelve weeks', async () => {
  await site().run("UPDATE agent_jobs SET merged_on = '2026-08-23' WHERE id = 1");
  expect(await textOf()).not.toContain('AFTER THE MERGE');
});

test('a pull request closed without being merged no longer awaits review', async () => {
  expect(await textOf()).toContain('Review #1: https://github.com/acme/docs/pull/1');
  await site().run(`
    INSERT INTO pull_requests BY NAME
    SELECT unnest([1, 2]) AS job, TIMESTAMP '2026-11-17' AS checked_at, checked_at AS next_check_at, DATE '2026-11-17' AS closed_on`);
  const text = await textOf();
  expect(text).not.toContain('https://github.com/acme/docs/pull/1');
  expect(text).toContain('OTHER PAGES\n\n/quickstart\n  No change, flagged');
});

test('a pull request to review has its number and age, a failed job its reason and the next step', async () => {
  const text = await textOf();
  expect(text).toContain(`/quickstart
  Review #1: https://github.com/acme/docs/pull/1
  Job 1, flagged on Nov 12, 2026, open since Nov 16, 2026
`);
  expect(text).toContain(`/guides/webhooks
  Job 3, flagged on Nov 12, 2026, ended on Nov 12, 2026
  The repository is read-only
  Once the cause is fixed, ask the agent to continue: readership jobs message 3 "…"
`);
});

test('a job that failed after it opened a pull request awaits review, as on the Agents page', async () => {
  await site().run(`UPDATE agent_jobs SET pr_link = 'https://github.com/acme/docs/pull/3' WHERE id = 3`);
  const text = await textOf();
  expect(text).toContain('/guides/webhooks\n  Review #3: https://github.com/acme/docs/pull/3\n');
});

test.each([
  ["'the code host answered 404.'", 'NULL', 'the code host answered 404.'],
  ['NULL', "'staging'", 'Merged into staging, which is neither the branch the agent began with nor'],
])('a pull request that may not be open is to be checked: %#', async (problem, into, note) => {
  await site().run(`
    INSERT INTO pull_requests BY NAME
    SELECT 1 AS job, TIMESTAMP '2026-11-17' AS checked_at, checked_at AS next_check_at, ${problem} AS problem, ${into} AS merged_into`);
  const report = await improve();
  const text = report.text();
  expect(text).toContain('One pull request is waiting for your review, and 1 pull request to check.');
  expect(text).toContain(`PULL REQUESTS TO CHECK

/quickstart
  Check #1: https://github.com/acme/docs/pull/1
`);
  expect(text).toContain(`  ${note}`);
  for (const html of [await report.page(), (await report.email()).html])
    expect(html).toMatch(/Pull requests to check[^]+Check #1&nbsp;→/);
});

test('a page whose first job was rejected counts once', async () => {
  const { subject } = await improve();
  await site().run(`
    INSERT INTO agent_jobs BY NAME SELECT * REPLACE (9 AS id, 'refused' AS state, NULL AS pr_link) FROM agent_jobs WHERE id = 1`);
  expect((await improve()).subject).toBe(subject);
});

test('each page is listed once, with the numbers for which it was chosen', async () => {
  await site().run(`
    UPDATE agent_jobs SET weekly_human = 1204.5, weekly_ai = 870, trend = -0.12 WHERE id = 1;
    INSERT INTO agent_jobs BY NAME SELECT * REPLACE (9 AS id, '/sdks/go' AS path, 'active' AS state, NULL AS pr_link, NULL AS ended_at)
    FROM agent_jobs WHERE id = 1;`);
  const choose = (path: string, code: string, rank: number) =>
    site().run(`
      INSERT INTO choices BY NAME
      SELECT * REPLACE ('${path}' AS path, ${code === 'flagged'} AS is_flagged, '${code}' AS code,
        '{"rank": ${rank}, "pages": 412, "weekly_human": 300, "weekly_ai": 50, "trend": 0.25, "weeks": 8}' AS facts)
      FROM choices WHERE code = 'excluded'`);
  await choose('/sdks/rust', 'flagged', 3);
  await choose('/sdks/c', 'next', 5);
  await choose('/sdks/lua', 'next', 7);
  const text = await textOf();
  const paths = text.match(/^\/\S+/gm) ?? [];
  expect(paths).toEqual([
    '/changelog',
    '/quickstart',
    '/guides/webhooks',
    '/sdks/go',
    '/sdks/rust',
    '/sdks/c',
    '/sdks/lua',
  ]);
  expect(text).toContain('  1,205 human and 870 AI views in a typical week (−12%)\n');
  expect(text).toContain(`
/sdks/rust
  No job yet, flagged on Nov 17, 2026
  1,204 human and 870 AI views in a typical week (+25%)
  #3 of 412 pages.
`);
  const report = await improve();
  expect(plainText(report.chat())).toContain('\n/sdks/rust\n  No job yet, flagged on Nov 17, 2026\n');
  expect(report.subject).toContain('5 pages newly flagged');
  const html = await report.page();
  const rows = [
    ...html.matchAll(/<tr><th scope="row" class="path">.*?<\/tr>(?:\s*<tr class="beneath">.*?<\/tr>)?/gs),
  ].map(([row]) =>
    row
      .replace(/<wbr>/g, '')
      .replace(/<[^>]+>/g, '|')
      .replace(/&[^;]+;/g, ' ')
      .replace(/[|\n]+/g, '|'),
  );
  expect(rows).toEqual([
    '|/changelog|–|–|–|Review #2 →|Job 2, flagged on Nov 12, 2026, open since Nov 10, 2026|Much read.|',
    '|/quickstart|1,205|870|−12%|Review #1 →|Job 1, flagged on Nov 12, 2026, open since Nov 16, 2026|',
    '|/sdks/go|1,205|870|−12%|Running|Flagged on Nov 12, 2026|',
    '|/sdks/rust|1,204|870|+25%|No job yet|Flagged on Nov 17, 2026|#3 of 412 pages.|',
    '|/sdks/c|1,204|870|+25%|Up next|#5 of 412 pages.|',
    '|/sdks/lua|1,204|870|+25%|Up next|#7 of 412 pages.|',
  ]);
  await site().run("UPDATE choices SET chosen_at = '2026-11-01' WHERE path = '/sdks/rust'");
  expect(await textOf()).toMatch(/4 pages newly flagged[^]+rust\n {2}No job yet, flagged on Nov 1, 2026/);
});

test('an older period lists its own jobs only, and a merged one stays in the week of its merge', async () => {
  await site().run(`
    UPDATE agent_jobs SET planned_at = TIMESTAMP '2026-10-27', ended_at = TIMESTAMP '2026-10-28' WHERE id = 1;
    UPDATE agent_jobs SET merged_on = DATE '2026-11-03' WHERE id = 1`);
  const of = async (period: string) => (await improve(period)).model;
  const pages = [{ path: '/quickstart', state: 'Merged' }];
  expect(await of('2026-W44')).toMatchObject({ pages, ready: [], failed: [] });
  expect(await of('2026-W45')).toMatchObject({ pages, ready: [], unchanged: [], failed: [] });
  expect(await of('2026-W46')).toMatchObject({ pages: [], ready: [{ id: 2 }], failed: [{ id: 3 }] });
});
