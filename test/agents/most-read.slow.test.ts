import { addDays as addDaysTo } from 'date-fns';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { PageViews } from '../../src/api/schema.js';
import { addDays, type Day, day } from '../../src/day.js';
import { platformWorkspace } from '../commands/workspace.js';
import { servePlatform } from '../platform.js';
import { callCli } from '../run-cli.js';
import { agentsWith, type Ending } from './platform-agents.js';

const NOW = new Date('2026-11-18T05:00:00Z');
const PAGES = 400;
const FULL_WEEKS = 17;
const FIRST_DAY = addDays(day('2026-11-16'), -7 * FULL_WEEKS);
/** From here on, people read half as much of the pages #256 to #384 as before, and AI as much. */
const PEOPLE_LEAVE = addDays(day('2026-11-16'), -56);

/** Page 1 is the most read, page 400 the least. */
const pageAt = (rank: number): string => `/guides/page-${String(rank).padStart(3, '0')}`;

function rowsAt(at: Day): PageViews[] {
  if (at < FIRST_DAY || at > day('2026-11-17')) return [];
  return Array.from({ length: PAGES }, (_, index) => {
    const rank = index + 1;
    const isLeft = rank >= 256 && rank <= 384 && at >= PEOPLE_LEAVE;
    const human = (20 + PAGES - rank) / (isLeft ? 2 : 1);
    const ai = 10 + Math.floor((PAGES - rank) / 4);
    return { path: pageAt(rank), human: Math.floor(human), ai, total: Math.floor(human) + ai };
  });
}

/** A workspace of that site, whose whole history is loaded. */
async function openSite(improve: string, endings: readonly Ending[] = []) {
  const { created, answer } = agentsWith(endings);
  let now = NOW;
  const platform = await servePlatform({ now: () => now, rowsOf: rowsAt, agents: answer });
  const settings = `history: { start: ${FIRST_DAY} }\nimprove: ${improve}\n`;
  const cwd = await platformWorkspace(platform, settings);
  const run = (...args: string[]) =>
    callCli(args, { cwd, env: { READERSHIP_API_KEY: 'adm_key_1' }, now: () => now });
  const wait = (days: number) => {
    now = addDaysTo(now, days);
  };
  expect(await run('export')).toMatchObject({ code: 0 });
  return { run, wait, created };
}

describe('on a site of 400 pages, of which many lose people but not AI', () => {
  let run: Awaited<ReturnType<typeof openSite>>['run'];
  beforeAll(async () => {
    ({ run } = await openSite('{ mode: plan }'));
  }, 120_000);

  it('the most-read pages are flagged first, and the next ones are in line', async () => {
    const listed = z.array(z.object({ path: z.string(), code: z.string(), why: z.string() }));
    const [plan] = z
      .array(z.object({ flagged: listed, next: listed, leftOut: listed }))
      .parse(JSON.parse((await run('improve', '--json')).stdout));
    expect(plan?.flagged.map(({ path }) => path)).toEqual([1, 2, 3, 4, 5].map(pageAt));
    expect(plan?.next.slice(0, 2).map(({ path }) => path)).toEqual([6, 7].map(pageAt));
    expect(plan?.leftOut).toEqual([]);
    expect(plan?.flagged[2]?.why).toBe(
      '#3 of 400 pages: 3,682 views in a typical week (2,919 by people, 763 by AI), steady over eight weeks',
    );
  });

  it('what waits only for room is no refusal: not in the plan, and not in the report', async () => {
    const { stdout } = await run('improve');
    expect(stdout).toMatch(/^Acme Docs: 5 pages would get a job now$/m);
    expect(stdout).toMatch(
      /Next in line, when there is room \(improve\.maxJobsPerWeek is 5\):\n.+\n +#6 +\/guides\/page-006 /,
    );
    expect(stdout).not.toContain('left out');
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    await run('run');
    const { stdout: report } = await run('report', 'improve', '--format', 'text');
    expect(report).toMatch(/\/guides\/page-001\n {2}No job yet, flagged today\n/);
    expect(report).toMatch(/\/guides\/page-010\n {2}Next in line\n/);
    expect(report).not.toContain('page-011');
    expect(report).not.toContain('Skipped');
  });
});

it('with the defaults, all of the most-read pages get their jobs', async () => {
  const { run, created } = await openSite('{ mode: apply }');
  await run('run');
  expect(created).toEqual([1, 2, 3, 4, 5].map(pageAt));
});

it('a failed job blocks its page for a week, and one without a change for eight', async () => {
  const { run, wait, created } = await openSite('{ mode: apply }', ['failed', 'no change']);
  await run('improve', '--apply');
  wait(1);
  await run('jobs', 'poll');
  const leftOut = async () => (await run('improve')).stdout;
  expect(await leftOut()).toMatch(
    /page-001 +job 1 failed on Nov 19, 2026; its next one may start on Nov 26, 2026$/m,
  );
  expect(await leftOut()).toMatch(
    /page-002 +job 2 ended on Nov 19, 2026; its next one may start on Jan 14, 2027$/m,
  );
  wait(7);
  await run('improve', '--apply');
  expect(created.slice(5)).toEqual([1, 6, 7, 8, 9].map(pageAt));
});
