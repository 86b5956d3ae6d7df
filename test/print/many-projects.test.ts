import { expect, it } from 'vitest';
import {
  callCleanly,
  daysAgo,
  endedWith,
  env,
  historyFile,
  platformOf,
  platformWorkspace,
  replaceIn,
} from '../commands/workspace.js';
import { changeHistory } from '../open-history.js';
import { changeState } from '../open-state.js';
import { useSmallReports } from '../small-reports.js';

/** A workspace with so many projects on a platform, each with three pages. */
async function workspaceWith(projects: number) {
  const platform = await platformOf(40, 3);
  const cwd = await platformWorkspace(
    platform,
    `history: { start: ${daysAgo(40)}, requestsPerHour: 1000 }\n`,
  );
  const ids = Array.from({ length: projects }, (_, index) => `{ id: prj_${index + 1} }`);
  await replaceIn(cwd, /^projects: .+$/m, `projects: [${ids.join(', ')}]`);
  await useSmallReports(cwd);
  return { cwd, cli: (...args: string[]) => callCleanly(args, { cwd, env }) };
}

it('many projects without problems share a line in what run, export and status print', async () => {
  const { cli } = await workspaceWith(12);
  const first = endedWith(0, await cli('run'));
  expect(first.stderr.match(/ to load of /g)).toHaveLength(10);
  expect(first.stdout).toMatch(/^ {2}12 projects: 480 new days, 1,440 rows, \d+ requests, .+ s$/m);
  expect(first.stdout.match(/^ {2}prj_\d+, .+ views by people, .+ by AI \(.+% AI\)$/gm)).toHaveLength(10);
  expect(first.stdout).toMatch(/^ {2}2 other projects, .+ views by people, .+ by AI \(.+% AI\)$/m);
  expect(first.stdout).toMatch(/^ {2}12 projects, each: \d+ pages? flagged; nothing created/m);
  expect(first.stdout).toMatch(/^ {2}24 pages in data\/reports$/m);
  const status = endedWith(0, await cli('status'));
  expect(status.stdout).toContain('12 projects up to date. To see one: readership status --project ID\n');
  expect(status.stdout).not.toContain('prj_1');
  const again = endedWith(0, await cli('run'));
  expect(again.stdout).toBe('Everything is up to date. To see what is stored: readership status\n');
  const exported = endedWith(0, await cli('export'));
  expect(exported.stdout).toMatch(/^12 projects: no new days; \d+ days read again\n/);
});

it('a project that is not as the others has lines of its own among many', async () => {
  const { cwd, cli } = await workspaceWith(12);
  endedWith(0, await cli('export'));
  for (const table of ['page_views', 'days'])
    await changeHistory(
      historyFile(cwd),
      `UPDATE ${table} SET human = human + 1, total = total + 1 WHERE project = 'prj_7' AND day = $day::DATE`,
      { day: daysAgo(1) },
    );
  const changed = endedWith(0, await cli('export'));
  expect(changed.stdout).toMatch(
    /^prj_7: no new days; \d+ days read again\n {2}1 day had changed on the platform since the last load\n11 projects: no new days; \d+ days read again\n/,
  );
  await changeState(
    historyFile(cwd),
    `INSERT INTO day_failures VALUES ('prj_3', '${daysAgo(1)}', '${new Date().toISOString()}', 'cut off', 1)`,
  );
  const status = endedWith(1, await cli('status'));
  expect(status.stdout).toMatch(/^prj_3\n[\s\S]+^ {2}failed .+\n[\s\S]*^11 projects up to date\./m);
});
