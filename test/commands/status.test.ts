import { addSeconds } from 'date-fns';
import { chmod, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { type Delivery, storeDelivery } from '../../src/state/emails.js';
import type { State } from '../../src/state/state.js';
import { delivery } from '../mail/letters.js';
import { openTestState } from '../open-state.js';
import { insert } from '../stored-jobs.js';
import { callCleanly, historyFile, KEY, serveSandbox, workspaceOf } from './workspace.js';

const statusSchema = z.object({
  diskFreeBytes: z.int().positive(),
  runs: z.array(z.object({ step: z.string(), outcome: z.string() })),
  unknownDeliveries: z.array(z.object({ recipient: z.string() })),
  waitingDeliveries: z.array(z.object({ recipient: z.string() })),
  failedDeliveries: z.array(z.object({ recipient: z.string(), period: z.string() })),
  pullRequestProblems: z.array(z.object({ job: z.int(), problem: z.string() })),
  unknownJobs: z.array(z.object({ id: z.int() })),
  unknownMessages: z.array(z.object({ id: z.int(), job: z.int() })),
  needs: z.array(z.string()),
});

/** Emails in the state: the address of each says what `status` does about it. */
const emailsAt = (now: Date): Delivery[] => {
  const old = new Date('2025-10-06');
  const email = (recipient: string, state: Delivery['state'], at: Date, period = '2026-W01') =>
    delivery({ report: 'weekly', project: 'p', period, recipient }, state, at);
  return [
    email('old-unknown@example.com', 'unknown', old),
    email('not-retried@example.com', 'waiting', old),
    email('d@example.com', 'failed', old, '2025-W39'),
    email('unknown@example.com', 'unknown', now),
    email('waiting@example.com', 'waiting', now),
    email('D@example.com', 'failed', now),
    email('d@example.com', 'failed', addSeconds(now, 1), '2026-W02'),
    email('removed@example.com', 'failed', now),
  ].map((one, index) => ({ ...one, attempt: 100 + index }));
};

/** A job and a message that may or may not have arrived, and a pull request that is no longer found. */
function storeLost(state: State, project: string): void {
  const prompt = { state: 'unknown', prompt: '', planned_at: '2026-01-05T00:00:00.000Z' };
  const views = { weekly_human: 0, weekly_ai: 0, weeks: '[]' };
  insert(state, 'jobs', { ...prompt, ...views, id: 7, reference: 'a', project, path: '/lost', reason: '' });
  insert(state, 'messages', { ...prompt, id: 3, reference: 'b', job: 7, origin: 'typed' });
  const [checked_at, next_check_at] = ['2026-01-05T00:00:00.000Z', '2026-01-05T00:00:00.000Z'];
  const problem = 'the code host answered 404.';
  insert(state, 'pull_requests', { job: 7, checked_at, next_check_at, problem });
}

it('status exits 1 and says what to do while something needs attention, and 0 when nothing does', async () => {
  const sandbox = await serveSandbox();
  const cwd = await workspaceOf(sandbox, 'reports: { weekly: { to: [d@example.com] } }\n');
  const cli = (key: string, ...args: string[]) =>
    callCleanly(args, { cwd, env: { READERSHIP_API_KEY: key } });
  const status = async () => {
    const { code, stdout } = await cli(KEY, 'status', '--json');
    return { code, ...statusSchema.parse(JSON.parse(stdout)) };
  };
  // Before anything is loaded, the cause is all there is to say.
  const refused = await cli('wrong-key', 'run');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^export failed: .+401.+READERSHIP_API_KEY is wrong or has expired.+\n$/);
  await cli(KEY, 'run');
  expect(await status()).toMatchObject({ code: 0, needs: [], unknownDeliveries: [] });
  const text = await cli(KEY, 'status');
  expect(text.stdout).toMatch(/last export +done, .+ UTC/);
  expect(text.stdout).toMatch(/disk +\d+\.\d GB free/);
  // Other permissions are no new history.
  const hourAgo = new Date(Date.now() - 3_600_000);
  await utimes(historyFile(cwd), hourAgo, hourAgo);
  await chmod(historyFile(cwd), 0o400);
  expect((await cli(KEY, 'status')).stdout).toMatch(/last written +1 h 0 min ago/);

  // A failure shows even though it changed nothing else, and disappears once it is over.
  await cli('wrong-key', 'export');
  const failed = await status();
  expect(failed.code).toBe(1);
  expect(failed.needs).toContainEqual(expect.stringMatching(/^export has failed since .+ UTC: .+key/));
  await cli(KEY, 'export');
  expect(await status()).toMatchObject({ code: 0, needs: [] });

  const { state, close } = await openTestState(join(cwd, 'data'));
  await state.transaction(() => {
    storeLost(state, sandbox.projectId);
    for (const email of emailsAt(new Date())) storeDelivery(state, email);
  });
  await close();
  await cli(KEY, 'publish');
  const unknown = await status();
  expect(unknown).toMatchObject({
    code: 1,
    unknownDeliveries: [{ recipient: 'old-unknown@example.com' }, { recipient: 'unknown@example.com' }],
    waitingDeliveries: [{ recipient: 'waiting@example.com' }],
    failedDeliveries: [{ recipient: 'D@example.com' }, { recipient: 'd@example.com', period: '2026-W02' }],
    unknownJobs: [{ id: 7 }],
    unknownMessages: [{ id: 3, job: 7 }],
    pullRequestProblems: [{ job: 7, problem: 'the code host answered 404.' }],
  });
  expect((await cli(KEY, 'status')).stdout).toMatch(/messages +1 unknown/);
});
