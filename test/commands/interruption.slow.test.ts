import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../sandbox/faulty-sandbox.js';
import { expectWhole, storedDays, storedTotals } from '../export/stored-days.js';
import { inHistory } from '../open-history.js';
import { callCli, runCli, startCli } from '../run-cli.js';
import { totalsOf } from './site.js';
import {
  daysAgo,
  endedWith,
  env,
  expectCleanEnd,
  historyFile,
  serveSandbox,
  workspaceOf,
} from './workspace.js';

const DAYS = 20;
/** On the busiest machine. */
const AT_ONCE_MS = 60_000;

const requestsAt = (sandbox: Sandbox): number =>
  Object.values(sandbox.inspect().requests.counts.views ?? {}).reduce((sum, count) => sum + count, 0);

async function setUp(days = DAYS) {
  const sandbox = await serveSandbox({ firstDay: daysAgo(days), pages: 300 });
  sandbox.setFaults([{ on: 'views', kind: 'latency', delayMs: 15 }]);
  // The start of the history is configured, so that all requests are for days.
  const cwd = await workspaceOf(sandbox, `history: { start: ${daysAgo(days)} }\n`);
  return { sandbox, cwd };
}

const reach = (sandbox: Sandbox, count: number) =>
  expect.poll(() => requestsAt(sandbox), { interval: 2, timeout: 100_000 }).toBeGreaterThanOrEqual(count);

/** Returns the number of stored days, and checks that each is complete. */
async function wholeDays(cwd: string): Promise<number> {
  const days = await inHistory(historyFile(cwd), async (history) => {
    await expectWhole(history);
    return storedDays(history);
  });
  expect(days.filter(({ state }) => state === 'failed' || state === 'inconsistent')).toEqual([]);
  return days.length;
}

async function expectComplete(sandbox: Sandbox, cwd: string, days = DAYS): Promise<void> {
  sandbox.setFaults([]);
  endedWith(0, await callCli(['export'], { cwd, env }));
  expect(await wholeDays(cwd)).toBe(days);
  const totals = await totalsOf(sandbox, daysAgo(days), daysAgo(1));
  expect(await inHistory(historyFile(cwd), storedTotals)).toEqual(totals);
  const answered = await runCli(['sql', 'SELECT sum(total) AS total FROM page_views'], { cwd });
  expect(answered.stdout).toBe(`total\n${totals.total}\n`);
}

describe('an export', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)(
    'stopped by %s exits %i at once; stored days are complete, and the next export loads the rest',
    async (signal, code) => {
      const { sandbox, cwd } = await setUp();
      const { child, result } = startCli(['export'], { cwd, env });
      await reach(sandbox, 12);
      const toldAtMs = performance.now();
      child.kill(signal);
      const ended = await result;
      expect(performance.now() - toldAtMs).toBeLessThan(AT_ONCE_MS);
      expect(ended.code, ended.stderr).toBe(code);
      expect(ended.stderr).toContain('Interrupted. What was read is stored; the next run continues.');
      await expectCleanEnd(cwd, ended);
      const days = await wholeDays(cwd);
      expect(days).toBeGreaterThan(0);
      expect(days).toBeLessThan(DAYS);
      // The same for each signal.
      if (signal === 'SIGINT') await expectComplete(sandbox, cwd);
    },
  );

  it('waiting for a server that never answers stops just as fast', async () => {
    const { sandbox, cwd } = await setUp();
    // The first request checks the sums of days.
    sandbox.setFaults([{ on: 'views', kind: 'timeout', after: 7 }]);
    const { child, result } = startCli(['export'], { cwd, env });
    await reach(sandbox, 10);
    const toldAtMs = performance.now();
    child.kill('SIGINT');
    expect((await result).code).toBe(130);
    expect(performance.now() - toldAtMs).toBeLessThan(AT_ONCE_MS);
    expect(await wholeDays(cwd)).toBe(6);
  });
});
