import { loadDays, siteHistory, type TestHistory } from './history.js';

/** Paths that anyone can create by visiting them. */
export const HOSTILE_PATHS = [
  '/<script>alert(1)</script>',
  `/"onmouseover="alert(1)'`,
  'javascript:alert(1)',
  '//evil.example/',
  '/\u202egpj.exe',
  `/${'x'.repeat(2000)}`,
  '/{{project.name}}',
  '=cmd()',
  '/a\r\nForged line',
];

/** An SQL string expression; SQL has no other way to write a NUL character. */
const literal = (text: string): string =>
  `('${text.replaceAll("'", "''").replaceAll('\0', "' || chr(0) || '")}')`;

/** A history that fills every section of every report, most of them with hostile paths. */
export async function fullHistory(): Promise<TestHistory> {
  const history = await siteHistory({ pages: 100 });
  await addHostile(history, HOSTILE_PATHS, 'The connection was reset\nForged line');
  return history;
}

/** Gives the paths views of all kinds, jobs in all states with that note, and entries among the skipped pages. */
export async function addHostile(history: TestHistory, hostilePaths: readonly string[], note: string) {
  const paths = hostilePaths.map((path, index) => `(${literal(path)}, ${index})`).join(', ');
  await history.run(`
    INSERT INTO page_views
    SELECT 'prj_1', day::DATE, path, page_of(path), 10 + 400 * (index % 2), 410 - 400 * (index % 2), 420
    FROM generate_series(DATE '2026-11-09', DATE '2026-11-15', INTERVAL 1 DAY) AS calendar (day), (VALUES ${paths}) AS page (path, index)`);
  await history.run(`
    UPDATE page_views SET human = human * 3 WHERE day >= '2026-11-09' AND path IN ('/changelog', '/guides/webhooks', '/quickstart');
    UPDATE page_views SET ai = ai * 3 WHERE day >= '2026-11-09' AND path IN ('/changelog', '/llms-full.txt', '/sdks/typescript');
    UPDATE page_views SET total = human + ai`);
  await loadDays(history);
  const states = ['active', 'completed', 'completed', 'failed', 'unknown', 'refused', 'archived'];
  const jobs = Array.from({ length: 21 }, (_, index) => {
    const state = states[index % states.length] ?? '';
    const pullRequest = index % 7 === 1 ? `'https://github.com/acme/docs/pull/${index}'` : 'NULL';
    const ended = ['active', 'unknown'].includes(state) ? 'NULL' : `TIMESTAMP '2026-11-12'`;
    const merged = state === 'archived' ? `DATE '2026-10-20'` : 'NULL';
    const path = literal(hostilePaths[index % hostilePaths.length] ?? '');
    return `(${index + 1}, ${path}, '${state}', ${pullRequest}, ${ended}, ${merged})`;
  });
  await history.run(`
    INSERT INTO agent_jobs BY NAME
    SELECT
      *, 'prj_1' AS project, '#3 of 412 pages: 2,074 views in a typical week (1,204 by people, 870 by AI)' AS reason,
      'p' AS prompt, 0 AS polls, TIMESTAMP '2026-11-12' + to_seconds(id) AS planned_at, ${literal(note)} AS note
    FROM (VALUES ${jobs.join(', ')}) AS job (id, path, state, pr_link, ended_at, merged_on)`);
  const choices = hostilePaths.flatMap((path, index) => [
    index % 2 === 0
      ? `(${literal(path)}, true, 'flagged', '{"weekly_human": 1204, "weekly_ai": 870, "trend": 0.1, "rank": 3, "pages": 412, "weeks": 8}')`
      : `(${literal(path)}, false, 'few-views', '{"minimum": 200}')`,
    `(${literal(`/skipped-${index}`)}, false, 'excluded', '{}')`,
  ]);
  await history.run(`
    INSERT INTO choices BY NAME
    SELECT
      *, 'prj_1' AS project, TIMESTAMP '2026-11-17' AS chosen_at, 1204 AS weekly_human, 870 AS weekly_ai
    FROM (VALUES ${choices.join(', ')}) AS choice (path, is_flagged, code, facts)`);
}
