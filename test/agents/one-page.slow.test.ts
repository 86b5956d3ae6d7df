import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { PageViews } from '../../src/api/schema.js';
import { addDays, type Day, day, daysBetween } from '../../src/day.js';
import { platformWorkspace } from '../commands/workspace.js';
import { openTestState } from '../open-state.js';
import { type PlatformOptions, servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';
import { reply } from '../serve.js';
import { insert } from '../stored-jobs.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const FIRST_DAY = addDays(day('2026-11-16'), -7 * 12);
const LAST_DAY = day('2026-11-17');
const PAGES = Array.from({ length: 12 }, (_, index) => `/docs/page-${index + 1}`);

/** How the views of one page are spread over its addresses on a day. */
type Addresses = (page: string, at: Day) => readonly { path: string; human: number; ai: number }[];

/** People read pages with a slash at the end, AI reads Markdown, and links lack both. */
const mixed: Addresses = (page) => [
  { path: `${page}/`, human: 0.7, ai: 0.05 },
  { path: page, human: 0.3, ai: 0.05 },
  { path: `${page}.md`, human: 0, ai: 0.9 },
];

const viewsOf = (page: string, at: Day) => {
  const rank = PAGES.indexOf(page);
  return { human: 300 - 20 * rank + (daysBetween(FIRST_DAY, at) % 5), ai: 280 - 20 * rank };
};

const rowsOf =
  (addresses: Addresses) =>
  (at: Day): PageViews[] =>
    at < FIRST_DAY || at > LAST_DAY
      ? []
      : PAGES.flatMap((page) =>
          addresses(page, at).map(({ path, human: people, ai: agents }) => {
            const views = viewsOf(page, at);
            const [human, ai] = [Math.round(views.human * people), Math.round(views.ai * agents)];
            return { path, human, ai, total: human + ai };
          }),
        ).filter(({ total }) => total > 0);

async function openSite(addresses: Addresses, improve = '{ mode: apply }') {
  /** The page of each job. */
  const created: string[] = [];
  const answer: PlatformOptions['agents'] = ({ body }, response) => {
    created.push(/^"(\/.*)"$/m.exec((JSON.parse(body) as { prompt: string }).prompt)?.[1] ?? '');
    reply(response, 201, { id: `job_${created.length}`, status: 'active' });
  };
  const platform = await servePlatform({ now: () => NOW, rowsOf: rowsOf(addresses), agents: answer });
  const cwd = await platformWorkspace(platform, `improve: ${improve}\n`);
  const run = (...args: string[]) =>
    callCli(args, { cwd, env: { READERSHIP_API_KEY: 'adm_key_1' }, now: () => NOW });
  expect(await run('export')).toMatchObject({ code: 0 });
  const query = async (sql: string) =>
    z
      .array(z.record(z.string(), z.unknown()))
      .parse(JSON.parse((await run('sql', sql, '--format', 'json')).stdout));
  return { cwd, run, query, created };
}

const report = async (run: Awaited<ReturnType<typeof openSite>>['run']) => {
  const { stdout } = await run('report', 'weekly', '--format', 'json');
  const paths = z.array(z.object({ path: z.string() }));
  return z
    .object({
      pages: z.object({ read: z.int(), new: z.int().nullable() }),
      mostRead: paths,
      oneSided: z.object({ human: paths, ai: paths }),
      newPages: paths,
      moved: z.object({ pages: paths }).nullable(),
    })
    .parse(JSON.parse(stdout));
};

describe('a site on which people read /page/ and AI reads /page.md', () => {
  let site: Awaited<ReturnType<typeof openSite>>;
  beforeAll(async () => {
    site = await openSite(mixed);
  }, 120_000);

  it('has each page once in the weekly report, and none under one audience only', async () => {
    const { pages, mostRead, oneSided, newPages } = await report(site.run);
    expect(pages.read).toBe(PAGES.length);
    expect(mostRead.map(({ path }) => path)).toEqual(PAGES.slice(0, 10));
    expect([oneSided.human, oneSided.ai, newPages]).toEqual([[], [], []]);
  });

  it('never gets two jobs for one page, whatever address a person types or an older job has', async () => {
    const { run, created, cwd } = site;
    // As 0.3 stored it, by its path.
    const { state, close } = await openTestState(join(cwd, 'data'));
    await state.transaction(() => {
      const page = { project: 'prj_1', path: '/docs/page-1.md', reason: '', prompt: '', weeks: '[]' };
      const views = { weekly_human: 0, weekly_ai: 0, planned_at: '2026-11-10T00:00:00.000Z' };
      const active = { id: 900, reference: 'old', state: 'active', remote_id: 'job_900' };
      insert(state, 'jobs', { ...active, ...page, ...views });
    });
    await close();
    expect(await run('improve', '--skip', '/docs/page-2.md')).toMatchObject({ code: 0 });
    await run('improve', '--apply');
    expect(created).toEqual([3, 4, 5, 6, 7].map((number) => `/docs/page-${number}`));
    await run('improve', '--apply', '/docs/page-3/index.html', '/docs/page-3.md', '/docs/page-1/');
    expect(created).toHaveLength(5);
    await run('improve', '--unskip', '/docs/page-2/');
    expect((await run('improve', '--json')).stdout).not.toContain('skipped');
  });
});

describe.each<[string, Addresses]>([
  [
    'turns on slashes at the end',
    (page, at) => [{ path: at < addDays(LAST_DAY, -8) ? page : `${page}/`, human: 1, ai: 1 }],
  ],
  [
    'turns off Markdown',
    (page, at) =>
      at < addDays(LAST_DAY, -8)
        ? [
            { path: page, human: 1, ai: 0 },
            { path: `${page}.md`, human: 0, ai: 1 },
          ]
        : [{ path: page, human: 1, ai: 1 }],
  ],
  [
    'moves to index.html',
    (page, at) => [
      { path: at < addDays(LAST_DAY, -8) ? `${page}.html` : `${page}/index.html`, human: 1, ai: 1 },
    ],
  ],
])('a site that %s', (_, addresses) => {
  it('has no new, gone or moved page because of it, and the same pages worth improving', async () => {
    const { run, query } = await openSite(addresses, '{ mode: plan }');
    const { pages, mostRead, newPages, moved } = await report(run);
    expect(pages).toMatchObject({ read: PAGES.length, new: 0 });
    expect([newPages, moved?.pages]).toEqual([[], []]);
    expect(mostRead.map(({ path }) => path)).toEqual(PAGES.slice(0, 10));
    const plan = (await run('improve', '--json')).stdout;
    const [{ flagged } = expect.fail()] = z
      .array(z.object({ flagged: z.array(z.object({ path: z.string() })) }))
      .parse(JSON.parse(plan));
    expect(flagged.map(({ path }) => path)).toEqual(PAGES.slice(0, 5));
    const changed = await query(
      `SELECT count(*) AS pages FROM changes('${addDays(LAST_DAY, -6)}', '${LAST_DAY}') WHERE abs(human - human_before) > 100`,
    );
    expect(changed).toEqual([{ pages: 0 }]);
  });
});
