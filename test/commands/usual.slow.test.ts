import { expect, it } from 'vitest';
import { z } from 'zod';
import { runCli } from '../run-cli.js';
import { changeSite, storedSite } from '../web/site.js';
import { endedWith, env } from './workspace.js';

const range = z.object({ low: z.int(), high: z.int() }).nullable();
const figures = z.object({ views: z.int(), usual: range });
const marked = z.object({ isBeyond: z.boolean() });
const report = z.object({
  detail: z.string(),
  ...{ human: figures, ai: figures },
  moved: z.object({ pages: z.array(z.object({ path: z.string() })), more: z.int() }),
  mostRead: z.array(z.object({ path: z.string(), human: marked, ai: marked })),
});

it('the built program calls usual what was usual before an outage, and marks what moved in each form', async () => {
  const cwd = await storedSite();
  const run = async (...args: string[]) => endedWith(0, await runCli(args, { cwd, env })).stdout;
  const weekly = async () =>
    report.parse(JSON.parse(await run('report', 'weekly', '--period', '2026-W46', '--format', 'json')));
  const paths = async () => {
    const sql = `SELECT path FROM movers('2026-11-09')`;
    const rows = z
      .array(z.object({ path: z.string() }))
      .parse(JSON.parse(await run('sql', sql, '--format', 'json')));
    return rows.map(({ path }) => path);
  };

  const before = await weekly();
  const moved = await paths();
  expect(moved.slice(0, 5)).toEqual(before.moved.pages.map(({ path }) => path));
  expect(before.moved.more).toBe(moved.length - before.moved.pages.length);
  for (const { path, human, ai } of before.mostRead)
    expect(human.isBeyond || ai.isBeyond, path).toBe(moved.includes(path));

  await changeSite(
    cwd,
    `DELETE FROM page_views WHERE day BETWEEN '2026-10-19' AND '2026-11-05'`,
    `UPDATE days SET human = 0, ai = 0, total = 0, pages = 0 WHERE day BETWEEN '2026-10-19' AND '2026-11-05'`,
  );
  const after = await weekly();
  expect(after.detail).toContain('The week before had no views on Nov 2 – 5, so no change is shown.');
  for (const audience of ['human', 'ai'] as const) {
    const { low = 0, high = 0 } = before[audience].usual ?? {};
    expect(low).toBeGreaterThan(10_000);
    expect(Math.abs((after[audience].usual?.low ?? 0) / low - 1), audience).toBeLessThan(0.1);
    expect(Math.abs((after[audience].usual?.high ?? 0) / high - 1), audience).toBeLessThan(0.1);
  }
  expect(await paths()).toEqual(moved);
});
