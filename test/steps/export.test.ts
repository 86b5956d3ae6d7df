import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { daysAgo, KEY, historyFile } from '../commands/workspace.js';
import { answerOf } from '../duckdb.js';
import { rowsOf, servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';
import { reply, serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { addDays } from '../../src/day.js';
import { ConfigurationError } from '../../src/errors.js';
import { auditStep } from '../../src/steps/export.js';
import { openClient } from '../api/open-client.js';
import { openExport, PROJECT, withOneMore } from '../export/open-export.js';
import { partsOf } from './parts-of.js';

const DAYS = 30;
const PROJECTS = ['prj_1', 'prj_2', 'prj_3'];

async function setUp() {
  const platform = await servePlatform({ now: () => new Date(), rowsOf: (day) => rowsOf(day, 10) });
  const cwd = await tempDir();
  const projects = PROJECTS.map((id) => `{ id: ${id} }`).join(', ');
  const history = `{ start: ${daysAgo(DAYS)}, requestsPerHour: 80 }`;
  await writeFile(
    join(cwd, 'readership.yaml'),
    `baseUrl: ${platform.baseUrl}\nprojects: [${projects}]\nhistory: ${history}\n`,
  );
  /** Project and day of each request for pages that an export sends, in order. */
  const exported = async (...args: string[]) => {
    const before = platform.seen.length;
    const { code, stdout } = await callCli(['export', ...args], { cwd, env: { READERSHIP_API_KEY: KEY } });
    const requests = platform.seen
      .slice(before)
      .filter(({ url }) => url.pathname !== '/' && url.searchParams.get('limit') !== '1');
    const asked = requests.map(({ url }) => {
      const [project = ''] = /prj_\d/.exec(url.pathname) ?? [];
      return `${project} ${url.searchParams.get('dateFrom') ?? ''}`;
    });
    return { code, stdout, asked };
  };
  const aDayLater = () =>
    answerOf(historyFile(cwd), 'UPDATE days SET checked_at = checked_at - INTERVAL 1 DAY');
  const stored = async () =>
    (await answerOf(historyFile(cwd), 'SELECT count(*) AS days FROM days'))[0]?.['days'];
  return { exported, aDayLater, stored };
}

it('an export loads the latest days of every project before the history of any', async () => {
  const { exported, aDayLater, stored } = await setUp();
  expect((await exported('--from', daysAgo(3))).code).toBe(0);
  await aDayLater();
  // Now each project has days that may have changed, and days that were never loaded.
  const { code, stdout, asked } = await exported();
  const latest = PROJECTS.flatMap((project) => [1, 2, 3].map((ago) => `${project} ${daysAgo(ago)}`));
  const first = asked.slice(0, latest.length);
  expect([...first].sort()).toEqual([...latest].sort());
  for (const project of PROJECTS) {
    const isOfProject = (each: string) => each.startsWith(project);
    expect(first.filter(isOfProject)).toEqual(latest.filter(isOfProject));
  }
  const past = asked.slice(latest.length);
  // The request limit stops it within the histories, which the projects load together.
  expect(code).toBe(75);
  const begun = PROJECTS.map((project) => past.findIndex((each) => each.startsWith(project)));
  expect(
    begun.every((place) => place >= 0 && place < DAYS - 3),
    begun.join(', '),
  ).toBe(true);
  expect(past.every((each) => (each.split(' ')[1] ?? '') < daysAgo(3))).toBe(true);
  expect(stdout.match(/^prj_\d/gm)).toEqual(PROJECTS);
  // What was read before the limit is stored.
  expect(await stored()).toBe(String(latest.length + past.length));
});

it('an export that stored no day leaves no history that looks like a site without views', async () => {
  const platform = await serve((_, response) => reply(response, 401, { error: 'no' }));
  const cwd = await tempDir();
  await writeFile(
    join(cwd, 'readership.yaml'),
    `baseUrl: ${platform.baseUrl}\nprojects: [{ id: prj_1 }]\nhistory: { start: ${daysAgo(3)} }\n`,
  );
  expect(await callCli(['export'], { cwd, env: { READERSHIP_API_KEY: KEY } })).toMatchObject({ code: 1 });
  expect(existsSync(historyFile(cwd))).toBe(false);
});

it('an audit that fails in one project still reports what it repaired in the others', async () => {
  const { run, clock, history, platform, yesterday, changed, original } = await openExport({ days: 10 });
  await run();
  const at = addDays(yesterday(), -5);
  changed.set(at, withOneMore(original(at)));
  const client = openClient(platform.baseUrl, { now: clock.now, projectId: PROJECT });
  const failing = new ConfigurationError('There is no key of this project');
  const parts = partsOf(history, {
    settings: { projects: [{ id: 'prj_0' }, { id: PROJECT }, { id: 'prj_2' }] },
    platform: {
      clientOf: ({ id }) => {
        if (id !== PROJECT) throw failing;
        return client;
      },
    },
    session: { now: clock.now },
  });
  const { detail, error } = await auditStep(parts, { repair: true });
  const repaired = detail.map(({ project, audit }) => [project.id, audit.repaired?.results.length]);
  expect(repaired).toEqual([[PROJECT, 1]]);
  expect(error).toBe(failing);
});
