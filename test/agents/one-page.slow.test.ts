import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { PageViews } from '../../src/api/schema.js';
import { addDays, type Day, day, daysBetween } from '../../src/day.js';
import { platformWorkspace } from '../commands/workspace.js';
import { openTestState } from '../open-state.js';
import { type PlatformOptions, servePlatform } from '../platform.js';
import { callCli, type CliResult } from '../run-cli.js';
import { reply } from '../serve.js';
import { insert } from '../stored-jobs.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const FIRST_DAY = addDays(day('2026-11-16'), -7 * 12);
const LAST_DAY = day('2026-11-17');
const PAGES = Array.from({ length: 12 }, (_, index) => `/docs/page-${index + 1}`);

/** People read pages with a slash at the end, AI reads Markdown, and links lack both. Until a week ago, pages ended in .html. */
const addressesOf = (page: string, at: Day) =>
  at < addDays(LAST_DAY, -8)
    ? [{ path: `${page}.html`, people: 1, agents: 1 }]
    : [
        { path: `${page}/`, people: 0.7, agents: 0.05 },
        { path: page, people: 0.3, agents: 0.05 },
        { path: `${page}.md`, people: 0, agents: 0.9 },
      ];

const rowsOf = (at: Day): PageViews[] =>
  at < FIRST_DAY || at > LAST_DAY
    ? []
    : PAGES.flatMap((page, rank) =>
        addressesOf(page, at).map(({ path, people, agents }) => {
          const human = Math.round((300 - 20 * rank + (daysBetween(FIRST_DAY, at) % 5)) * people);
          const ai = Math.round((280 - 20 * rank) * agents);
          return { path, human, ai, total: human + ai };
        }),
      );

describe('a site on which people read /page/ and AI reads /page.md, and which changed its addresses', () => {
  /** The page of each job. */
  const created: string[] = [];
  let cwd: string;
  let run: (...args: string[]) => Promise<CliResult>;
  beforeAll(async () => {
    const agents: PlatformOptions['agents'] = ({ body }, response) => {
      created.push(/^"(\/.*)"$/m.exec((JSON.parse(body) as { prompt: string }).prompt)?.[1] ?? '');
      reply(response, 201, { id: `job_${created.length}`, status: 'active' });
    };
    const platform = await servePlatform({ now: () => NOW, rowsOf, agents });
    cwd = await platformWorkspace(platform, 'improve: { mode: apply }\n');
    run = (...args) => callCli(args, { cwd, env: { READERSHIP_API_KEY: 'adm_key_1' }, now: () => NOW });
    expect(await run('export')).toMatchObject({ code: 0 });
  });

  it('has each page once in the weekly report: none is new, has moved, or is under one audience only', async () => {
    const paths = z.array(z.object({ path: z.string() }));
    const report = z.object({
      pages: z.object({ read: z.int(), new: z.int().nullable() }),
      mostRead: paths,
      oneSided: z.object({ human: paths, ai: paths }),
      newPages: paths,
      moved: z.object({ pages: paths }).nullable(),
    });
    const { stdout } = await run('report', 'weekly', '--format', 'json');
    const { pages, mostRead, oneSided, newPages, moved } = report.parse(JSON.parse(stdout));
    expect(pages).toEqual({ read: PAGES.length, new: 0 });
    expect(mostRead.map(({ path }) => path)).toEqual(PAGES.slice(0, 10));
    expect([oneSided.human, oneSided.ai, newPages, moved?.pages]).toEqual([[], [], [], []]);
  });

  it('never gets two jobs for one page, whatever address a person types or an older job has', async () => {
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
