import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectWhole, storedDays } from '../history/stored-days.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { runCli, startCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { daysAgo, expectCleanEnd, KEY, liveFile, serveSandbox, workspaceOf } from './workspace.js';

const DAYS = 40;
const MOMENTS = 6;
const env = { READERSHIP_API_KEY: KEY };
const SETTINGS = `
history: { start: ${daysAgo(DAYS)}, concurrency: 2, requestsPerHour: unlimited }
improve: { mode: apply, minWeeklyViews: 1 }
mail: { from: docs@example.com }
reports: { weekly: { to: [docs@example.com] } }
`;
const HALF_DONE = `
  SELECT 'job' AS what FROM agent_jobs WHERE state = 'submitting'
  UNION ALL SELECT 'mail' FROM deliveries WHERE state = 'sending'
  UNION ALL SELECT 'step' FROM runs WHERE outcome = 'running'`;

/** How many days are stored; asserts that nothing in the database is half done. */
async function wholeDays(cwd: string): Promise<number> {
  const warehouse = await liveWarehouse(liveFile(cwd));
  await expectWhole(warehouse);
  expect(await warehouse.query(HALF_DONE, z.object({ what: z.string() }))).toEqual([]);
  const days = await storedDays(warehouse);
  await closeNow(warehouse);
  return days.length;
}

describe('readership start', () => {
  it(`told to stop at ${MOMENTS} random moments exits 0 within 5 s with nothing half done; the next completes it`, async () => {
    const sandbox = await serveSandbox({ firstDay: daysAgo(DAYS) });
    sandbox.setFaults([{ on: 'views', kind: 'latency', delayMs: 100 }]);
    const cwd = await workspaceOf(sandbox, SETTINGS);
    for (let moment = 0; moment < MOMENTS; moment++) {
      const service = startCli(['start'], { cwd, env });
      await service.until(/"msg":"started"/);
      await delay(Math.random() * 1_000);
      const toldAtMs = performance.now();
      service.child.kill(moment % 2 === 0 ? 'SIGTERM' : 'SIGINT');
      const ended = await service.result;
      expect(performance.now() - toldAtMs).toBeLessThan(5_000);
      expect(ended.code, ended.stderr).toBe(0);
      expect(ended.stdout).toContain('stopped');
      await wholeDays(cwd);
    }
    // Had all been done before the last stop, nothing would be due.
    const warehouse = await liveWarehouse(liveFile(cwd));
    await warehouse.transaction((transaction) =>
      transaction.execute("DELETE FROM runs WHERE step = 'report'"),
    );
    await closeNow(warehouse);
    const service = startCli(['start'], { cwd, env });
    await service.until(/publish done/);
    service.child.kill('SIGTERM');
    const ended = await service.result;
    expect(ended.code).toBe(0);
    for (const line of ended.stdout.trim().split('\n'))
      expect(() => JSON.parse(line) as unknown).not.toThrow();
    await expectCleanEnd(cwd, ended);
    expect(await wholeDays(cwd)).toBe(DAYS);
    const files = await readdir(join(cwd, 'data'), { recursive: true });
    expect(files.filter((name) => /unfinished|\.tmp/.test(name))).toEqual([]);
    const query = 'SELECT count(*) AS n FROM agent_jobs WHERE remote_id IS NOT NULL';
    const published = await runCli(['sql', query], { cwd });
    expect(published.stdout, published.stderr).toBe(`n\n${sandbox.inspect().jobs.length}\n`);
  }, 60_000);

  it('finds the database held by another process: says so, and tries again later', async () => {
    const sandbox = await serveSandbox();
    const cwd = await workspaceOf(sandbox);
    const holder = await liveWarehouse(liveFile(cwd));
    const service = startCli(['start'], { cwd, env });
    await service.until(/"outcome":"later","error":".+ is held by `readership test`/);
    service.child.kill('SIGTERM');
    expect(await service.result).toMatchObject({ code: 0, stderr: '' });
    await closeNow(holder);
  });

  it('does not stay without a key: it says which is missing, and exits 2', async () => {
    const cwd = await workspaceOf(await serveSandbox());
    const { code, stderr } = await runCli(['start'], { cwd });
    expect(code).toBe(2);
    expect(stderr).toContain('set READERSHIP_API_KEY');
  });

  it('names every schedule that is none, with its line', async () => {
    const cwd = await tempDir();
    const workspace = await workspaceOf(
      { baseUrl: 'http://127.0.0.1', projectId: 'prj_1' },
      "schedule:\n  export: nightly\n  poll: '0 0 31 2 *'\n  timezone: Mars\n",
    );
    const { code, stderr } = await runCli(['start', '--config', join(workspace, 'readership.yaml')], { cwd });
    expect(code).toBe(2);
    for (const fault of [
      /:4 {2}schedule\.export: not a cron/,
      /:5 {2}schedule\.poll: not a/,
      /:6 .+time zone/,
    ])
      expect(stderr).toMatch(fault);
  });
});
