import { expect, it } from 'vitest';
import { addDays, dayOf } from '../../src/day.js';
import { inHistory, valuesOf } from '../open-history.js';
import { callCli } from '../run-cli.js';
import { expectAllOnce, openSite } from './site.js';
import { daysAgo, KEY, historyFile } from './workspace.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A site, and commands whose clock is that far ahead of the real one, which is the platform's by default. */
async function siteWithClock(settings?: string) {
  let platformNow = () => new Date();
  const site = await openSite({ now: () => platformNow(), pages: 60 }, settings);
  const run = async (args: readonly string[], aheadMs = 0) => {
    const now = () => new Date(Date.now() + aheadMs);
    const { code, stdout, stderr } = await callCli(args, { cwd: site.cwd, env: site.env, now });
    return { code, output: stdout + stderr };
  };
  const daysWhere = (condition: string) =>
    inHistory(historyFile(site.cwd), (history) =>
      valuesOf(history, `SELECT day FROM days WHERE ${condition} ORDER BY day`),
    );
  const setPlatform = (aheadMs: number) => {
    platformNow = () => new Date(Date.now() + aheadMs);
  };
  return { site, run, emails: site.emails, daysWhere, setPlatform };
}

it('with a clock 30 days ahead, nothing that has not happened is loaded or emailed, and a message says why', async () => {
  const { site, run, emails, daysWhere } = await siteWithClock();
  const ahead = await run(['run'], 30 * DAY_MS);
  expect(ahead.output).toMatch(/clock of this machine is 30 days ahead of that of http.+NTP/);
  expect(ahead.code, ahead.output).toBe(75);
  expect(ahead.output).toContain("not over yet by the platform's clock, which is behind this machine's");
  expect(await daysWhere(`day > '${daysAgo(1)}'`)).toEqual([]);
  expect(ahead.output).toMatch(
    /improve and report not finished.+Nothing is sent while the clocks of this machine and the platform are more than an hour/,
  );
  expect(emails()).toBe(0);
  expect(site.sandbox.inspect().jobs).toEqual([]);

  const early = addDays(dayOf(new Date()), 7);
  const sent = await run(['report', 'send', 'weekly', '--force', '--period', early], 30 * DAY_MS);
  expect(sent.code, sent.output).not.toBe(0);
  expect(emails()).toBe(0);

  const right = await run(['run']);
  expect(right.code, right.output).toBe(0);
  expect(right.output).not.toContain('clock of this machine');
  expect(emails()).toBe(1);
  await expectAllOnce(site);
});

it('a clock that jumps back duplicates nothing, skips no wait, and has no effect once it is right', async () => {
  const [settleDays, requestsPerHour] = [3, 64];
  const { site, run, daysWhere, setPlatform } = await siteWithClock(`
history: { requestsPerHour: ${requestsPerHour}, settleDays: ${settleDays} }
improve: { mode: apply, minWeeklyViews: 1 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`);
  const finalDays = () => daysWhere("state = 'final'");
  const first = await run(['run']);
  expect(first.code, first.output).toBe(0);
  const final = await finalDays();
  expect(final.at(-1)).toBe(daysAgo(settleDays + 1));

  for (const [behindMs, command] of [
    [HOUR_MS, 'export'],
    [DAY_MS, 'export'],
    [7 * DAY_MS, 'run'],
  ] as const) {
    const { code, output } = await run([command], -behindMs);
    expect([0, 75], output).toContain(code);
    expect(output).not.toContain(KEY);
    expect(site.sandbox.inspect().requests.counts.views?.['200'] ?? 0).toBeLessThanOrEqual(requestsPerHour);
    expect(await finalDays()).toEqual(final);
    const status = await run(['status'], -behindMs);
    expect(status.output).not.toMatch(/[-−]\d+ (s|min|h)\b/);
    expect(status.output).toContain('which is in the future by this clock: readership doctor');
  }

  setPlatform(2 * DAY_MS);
  const last = await run(['run'], 2 * DAY_MS);
  expect(last.code, last.output).toBe(0);
  expect((await run(['status'], 2 * DAY_MS)).output).toMatch(/last written +(?:under )?\d.* ago/);
  await expectAllOnce(site, addDays(daysAgo(1), 2));
});
