import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { addDays, dayOf } from '../../src/day.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { type Ended, makePreload, runCommand } from '../torture/command.js';
import { expectAllOnce, openSite, type Site } from './site.js';
import { KEY, liveFile } from './workspace.js';

// Each command is a separate process, and a shared machine may be slow.
vi.setConfig({ testTimeout: 120_000 });

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The system clock, which dates the published file. */
const START = new Date();
const SETTLE_DAYS = 3;
/** Enough for the first night and little more. */
const REQUESTS_PER_HOUR = 64;
const SETTINGS = `
history: { requestsPerHour: ${REQUESTS_PER_HOUR}, settleDays: ${SETTLE_DAYS}, maxWait: 1s }
improve: { mode: apply, minWeeklyViews: 1 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

let preload: string;
beforeAll(async () => {
  preload = await makePreload();
});
afterAll(() => rm(dirname(fileURLToPath(preload)), { recursive: true }));

/** A site at a time set by the test, and commands whose clock may differ. */
async function siteInTime() {
  let now = START;
  const site = await openSite({ now: () => now, firstDay: addDays(dayOf(START), -45), pages: 60 }, SETTINGS);
  const run = (args: readonly string[], behindMs = 0): Promise<Ended> =>
    runCommand({ program: PROGRAM, preload, directory: site.cwd, env: site.env }, args, {
      clock: { originRealMs: Date.now(), originSimulatedMs: now.getTime() - behindMs, rate: 1 },
      kill: null,
    });
  const pass = (ms: number) => {
    now = new Date(now.getTime() + ms);
  };
  return { site, run, pass, now: () => now };
}

const PROGRAM = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

const dayRow = z.object({ day: z.string() });

/** The days marked final. */
async function finalDays({ cwd }: Site): Promise<string[]> {
  const warehouse = await liveWarehouse(liveFile(cwd));
  const rows = await warehouse.query("SELECT day FROM day_loads WHERE state = 'final' ORDER BY ALL", dayRow);
  await closeNow(warehouse);
  return rows.map(({ day }) => day);
}

const viewsAsked = ({ sandbox }: Site): number => sandbox.inspect().requests.counts.views?.['200'] ?? 0;

it('a clock that jumps back duplicates nothing, skips no wait, and has no effect once it is right', async () => {
  const { site, run, pass, now } = await siteInTime();
  const first = await run(['run']);
  expect(first.code, first.output).toBe(0);
  const final = await finalDays(site);

  pass(60_000);
  for (const behindMs of [HOUR_MS, DAY_MS, 7 * DAY_MS]) {
    for (const args of [['run'], ['export']]) {
      const { code, output } = await run(args, behindMs);
      expect([0, 75], output).toContain(code);
      expect(output).not.toContain(KEY);
    }
    expect(viewsAsked(site)).toBeLessThanOrEqual(REQUESTS_PER_HOUR);
    expect(await finalDays(site)).toEqual(final);
    expect(final.at(-1)).toBe(addDays(dayOf(now()), -SETTLE_DAYS - 1));
    const status = await run(['status'], behindMs);
    expect(status.output).not.toMatch(/[-−]\d+ (s|min|h)\b/);
    expect(status.output).toContain('which is in the future by this clock: readership doctor');
  }

  pass(2 * DAY_MS);
  const last = await run(['run']);
  expect(last.code, last.output).toBe(0);
  expect((await run(['status'])).output).toMatch(/published +(?:under )?\d.* ago/);
  await expectAllOnce(site, addDays(dayOf(now()), -1));
});
