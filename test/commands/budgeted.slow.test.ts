import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Day } from '../../src/day.js';
import { readDayRecords } from '../../src/export/day-records.js';
import { changeState } from '../open-state.js';
import { openState } from '../../src/state/open.js';
import { changeHistory, inHistory } from '../open-history.js';
import { rowsOf } from '../platform.js';
import { startCli } from '../run-cli.js';
import {
  callCleanly,
  daysAgo,
  endedWith,
  env,
  historyFile,
  platformOf,
  platformWorkspace,
} from './workspace.js';

const DAYS = 12;

/** A platform in real time with twelve days of history, and a workspace that reads it. */
async function setUp(
  options: { limit?: number; saysWhen?: boolean; requestsPerHour?: number | 'unlimited' } = {},
) {
  const { requestsPerHour = 'unlimited', ...limits } = options;
  const changed = new Map<Day, ReturnType<typeof rowsOf>>();
  const platform = await platformOf(DAYS, 10, limits, changed);
  const history = `history: { requestsPerHour: ${requestsPerHour} }\n`;
  const cwd = await platformWorkspace(platform, history);
  const run = (...args: string[]) => callCleanly(args, { cwd, env });
  return { platform, changed, cwd, run, file: historyFile(cwd) };
}

const planSchema = z.array(
  z.object({
    range: z.object({ first: z.string(), last: z.string() }).nullable(),
    days: z.array(z.object({ day: z.string(), due: z.string(), requests: z.int() })),
    requests: z.int().nullable(),
  }),
);

describe('readership export --plan', () => {
  it('sends no requests, before the first export or after one stopped by the request limit', async () => {
    const { platform, run, file, cwd } = await setUp({ requestsPerHour: 20 });
    const before = endedWith(0, await run('export', '--plan'));
    expect(before.stdout).toMatch(/not known how many days there are.+with at most \d+ requests/);
    const [, all] =
      /If no day has more than 250 viewed pages, .+ since 2015, ([\d,]+)\./.exec(before.stdout) ?? [];
    const since2015 = (Date.now() - Date.parse('2015-01-01')) / 86_400_000;
    expect(Number(all?.replace(',', ''))).toBe(Math.floor(since2015));
    expect(platform.views).toHaveLength(0);

    endedWith(75, await run('export'));
    const sent = platform.views.length;
    const text = await run('export', '--plan');
    expect(text.stdout).toMatch(/Acme Docs: \d+ days? to load of /);
    expect(text.stdout).toMatch(/never loaded +\d+ days?: /);
    expect(text.stdout).toMatch(/about \d+ requests?\n/);
    const planOf = async () => {
      const { stdout } = await run('export', '--plan', '--json');
      return planSchema.parse(JSON.parse(stdout))[0] ?? expect.fail();
    };
    const plan = await planOf();
    expect(plan.range).toEqual({ first: daysAgo(DAYS), last: daysAgo(1) });
    // What was read today is not checked again.
    expect(plan.requests).toBe(plan.days.length);
    expect(platform.views).toHaveLength(sent);

    // A backup that lacks a day.
    const backup = join(cwd, 'backup.duckdb');
    await copyFile(file, backup);
    await changeHistory(backup, `DELETE FROM days WHERE day = '${daysAgo(2)}'`);
    const restored = endedWith(0, await run('restore', '--from', backup));
    expect((await planOf()).days.length).toBe(plan.days.length + 1);
    expect(restored.stdout).toMatch(/the next run loads .+ and \d+ missing days?\.$/m);
  });
});

describe('a request limit that is used up', () => {
  it('makes a reload wait as long as necessary', async () => {
    const { platform, cwd, run } = await setUp({ requestsPerHour: 16 });
    endedWith(75, await run('export'));
    const sent = platform.views.length;
    const reload = startCli(['export', '--reload', '--from', daysAgo(3)], { cwd, env });
    await reload.until(/history\.requestsPerHour reached: \d+ of 16 used.*Waiting until/);
    reload.child.kill('SIGINT');
    expect((await reload.result).code).toBe(130);
    expect(platform.views.length).toBeLessThanOrEqual(16);
    expect(platform.views.length).toBeGreaterThanOrEqual(sent);
  });

  it('ends an export with 75, says what is left and when to resume, and the next run resumes', async () => {
    const { platform, run, file } = await setUp({ requestsPerHour: 16 });
    const records = () =>
      inHistory(file, async (history) => {
        const state = (await openState(dirname(file))) ?? expect.fail('there is no state');
        return readDayRecords({ history, state }, 'prj_1').finally(() => {
          state.close();
        });
      });
    const first = endedWith(75, await run('export'));
    expect(first.stdout).toMatch(/\d+ days? left, about \d+ requests?; resumes on .+ UTC/);
    expect(first.stderr).toMatch(
      /history\.requestsPerHour reached: \d+ of 16 used.+can be sent on \w+ \d+, \d{4} at/,
    );
    expect(platform.views.length).toBeLessThanOrEqual(16);
    const loaded = await records();
    expect(loaded.has(daysAgo(1))).toBe(true);
    expect([...loaded.values()].every(({ state }) => state !== 'failed')).toBe(true);

    endedWith(75, await run('export'));
    expect(platform.busiestHour()).toBeLessThanOrEqual(16);

    // An hour later.
    await changeState(
      file,
      "UPDATE requests SET minute = strftime('%Y-%m-%dT%H:%M:%fZ', minute, '-63 minutes')",
    );
    endedWith(0, await run('export'));
    expect((await records()).size).toBe(DAYS);
  });
});

describe('readership audit', () => {
  it('exits 0 if nothing differs, 1 if something does, and 0 after it was repaired', async () => {
    const { platform, changed, run } = await setUp();
    expect((await run('export')).code).toBe(0);
    const sent = platform.views.length;
    const clean = await run('audit');
    expect(clean).toMatchObject({ code: 0 });
    expect(clean.stdout).toContain('9 final days verified, no differences');
    expect(platform.views.length).toBe(sent + 1);

    changed.set(daysAgo(8), rowsOf(daysAgo(8), 11));
    const found = await run('audit');
    expect(found.code).toBe(1);
    expect(found.stdout).toMatch(/differ from the platform: .+\n.*readership audit --repair/);
    expect(await run('audit', '--repair')).toMatchObject({ code: 0 });
    expect((await run('audit')).stdout).toContain('no differences');
  });
});
