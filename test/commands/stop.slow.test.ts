import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pMap from 'p-map';
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { Sandbox } from '../sandbox/faulty-sandbox.js';
import { expectWhole, storedDays } from '../export/stored-days.js';
import { openTestState } from '../open-state.js';
import { changeHistory, inHistory } from '../open-history.js';
import { runCli, startCli } from '../run-cli.js';
import {
  daysAgo,
  endedWith,
  env,
  expectCleanEnd,
  historyFile,
  serveSandbox,
  workspaceOf,
} from './workspace.js';
import { useSmallReports } from '../small-reports.js';

const STOPS = Number(process.env['STOPS'] ?? 100);
/** Each with its own platform, directory and process. */
const SERVICES = Math.min(4, Math.ceil(STOPS / 3));
const DAYS = 40;
const DAYS_AGAIN = 8;
/** The steps during which the service is stopped, in turn. */
const STEPS = ['export', 'improve', 'report'] as const;
const SETTINGS = `
history: { start: ${daysAgo(DAYS)} }
improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 1000, cooldownDays: 0 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;

const HALF_DONE_IN_STATE = `
  SELECT 'email' AS what FROM emails WHERE state IN ('sending', 'unknown')
  UNION ALL SELECT path FROM jobs WHERE state IN ('sending', 'unknown')
  UNION ALL SELECT 'step' FROM runs WHERE outcome = 'running'`;
/** Undoes the last days, all steps and all emails, so that every step has work again. */
const WORK_AGAIN = [
  'DELETE FROM page_views WHERE day >= $since::DATE',
  'DELETE FROM days WHERE day >= $since::DATE',
];
const WORK_AGAIN_IN_STATE = ['DELETE FROM runs', 'DELETE FROM emails'];

async function expectNothingHalfDone(cwd: string): Promise<void> {
  // A service that is stopped before it has read a day writes no history.
  if (existsSync(historyFile(cwd))) await inHistory(historyFile(cwd), expectWhole);
  const { state, close } = await openTestState(join(cwd, 'data'));
  expect(state.all(HALF_DONE_IN_STATE, z.object({ what: z.string() }))).toEqual([]);
  await close();
  const files = await readdir(join(cwd, 'data'), { recursive: true });
  expect(files.filter((name) => /unfinished|next-|\.tmp/.test(name))).toEqual([]);
}

/** Starts the service and stops it during a step, each stop in the next one. Returns the interrupted step, if any. */
async function stopOnce(cwd: string, stop: number) {
  const service = startCli(['start'], { cwd, env });
  const step = STEPS[(stop + Math.floor(stop / SERVICES)) % STEPS.length] ?? '';
  await service.until(new RegExp(`${step} started|report done`));
  await delay(Math.random() * 150);
  service.child.kill(Math.random() < 0.5 ? 'SIGTERM' : 'SIGINT');
  const ended = endedWith(0, await service.result);
  expect(ended.stdout).toContain('stopped');
  await expectNothingHalfDone(cwd);
  const { state, close } = await openTestState(join(cwd, 'data'));
  const stopped = "SELECT step FROM runs WHERE outcome = 'interrupted'";
  const interrupted = state.get(stopped, z.object({ step: z.string() }))?.step;
  await state.transaction(() => {
    for (const statement of WORK_AGAIN_IN_STATE) state.run(statement);
  });
  await close();
  if (existsSync(historyFile(cwd)))
    for (const statement of WORK_AGAIN)
      await changeHistory(historyFile(cwd), statement, { since: daysAgo(DAYS_AGAIN) });
  return interrupted;
}

/** Restarts the service, lets it do everything due, and checks that nothing is missing or duplicated. */
async function expectCompleted(cwd: string, sandbox: Sandbox): Promise<void> {
  sandbox.setFaults([]);
  const service = startCli(['start'], { cwd, env });
  await service.until(/report done/);
  service.child.kill('SIGTERM');
  const ended = endedWith(0, await service.result);
  for (const line of ended.stdout.trim().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow();
  await expectCleanEnd(cwd, ended);
  await expectNothingHalfDone(cwd);
  expect(await inHistory(historyFile(cwd), storedDays)).toHaveLength(DAYS);
  const query = 'SELECT count(*) AS n FROM jobs WHERE remote_id IS NOT NULL';
  const answered = await runCli(['sql', query], { cwd });
  expect(answered.stdout, answered.stderr).toBe(`n\n${sandbox.inspect().jobs.length}\n`);
}

it(`start, stopped at ${STOPS} random moments, exits 0 with nothing half done; the next start completes it`, async () => {
  const services = Array.from({ length: SERVICES }, (_, index) => index);
  const interrupted = await pMap(services, async (index) => {
    const sandbox = await serveSandbox({ firstDay: daysAgo(DAYS) });
    sandbox.setFaults([{ on: 'any', kind: 'latency', delayMs: 40 }]);
    const cwd = await useSmallReports(await workspaceOf(sandbox, SETTINGS));
    const steps: Awaited<ReturnType<typeof stopOnce>>[] = [];
    for (let stop = index; stop < STOPS; stop += SERVICES) steps.push(await stopOnce(cwd, stop));
    await expectCompleted(cwd, sandbox);
    return steps;
  });
  const steps = interrupted.flat();
  if (STOPS < 20) expect(new Set(steps).size, steps.join()).toBeGreaterThan(1);
  else expect(steps).toEqual(expect.arrayContaining([...STEPS]));
}, 600_000);
