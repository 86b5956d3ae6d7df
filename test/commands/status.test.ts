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
  waitingDeliveries: z.array(z.object({ recipient: z.string(), note: z.string() })),
  unknownJobs: z.array(z.object({ id: z.int() })),
  unknownMessages: z.array(z.object({ id: z.int(), job: z.int() })),
  needs: z.array(z.string()),
});

const EXPORT_FAILED = 'export 2026-01-05T00:00:00.000Z';

/** Emails in the state, those of a year ago first. */
const emailsAt = (lost: Date): Delivery[] => {
  const old = new Date('2025-10-06');
  const weekly = (period: string, recipient: string) => ({
    report: 'weekly',
    project: 'p',
    period,
    recipient,
  });
  const alert = { report: 'alert', project: '-', period: EXPORT_FAILED, recipient: 'ops@example.com' };
  const refused = '550 no such user';
  return [
    // One is asked about until it is settled, one is not retried anymore, and one arrived.
    delivery(weekly('2025-W40', 'u@example.com'), 'unknown', old),
    delivery(weekly('2025-W40', 'w@example.com'), 'waiting', old),
    delivery(weekly('2025-W40', 'd@example.com'), 'sent', old),
    // One was refused long ago, and of two that were refused lately, neither was followed by one that arrived.
    { ...delivery(weekly('2025-W39', 'd@example.com'), 'failed', old), note: refused },
    delivery(weekly('2026-W01', 'a@example.com'), 'unknown', lost),
    delivery(alert, 'unknown', lost),
    { ...delivery(weekly('2026-W01', 'b@example.com'), 'waiting', lost), note: 'the mail server is off' },
    { ...delivery(weekly('2026-W01', 'D@example.com'), 'failed', lost), note: refused },
    { ...delivery(weekly('2026-W02', 'd@example.com'), 'failed', addSeconds(lost, 1)), note: refused },
    { ...delivery(weekly('2026-W01', 'removed@example.com'), 'failed', lost), note: refused },
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
    unknownDeliveries: ['ops', 'u', 'a'].map((name) => ({ recipient: `${name}@example.com` })),
    waitingDeliveries: [{ recipient: 'b@example.com', note: 'the mail server is off' }],
  });
  expect(unknown).toMatchObject({ unknownJobs: [{ id: 7 }], unknownMessages: [{ id: 3, job: 7 }] });
  const [ofCodeHost, ofJob, ofMessage, ...ofMails] = unknown.needs;
  expect(ofCodeHost).toMatch(
    /1 pull request could not be looked up, such as that of job 7: the code host answered 404/,
  );
  expect(ofJob).toBe(
    'job 7 (/lost) may or may not exist: readership jobs settle 7 --sent REMOTE_ID, or --not-sent',
  );
  expect(ofMessage).toMatch(/message 3 to job 7 .+: readership jobs settle 7 --sent, or --not-sent/);
  // Each command settles one email to one person.
  expect(ofMails).toEqual([
    'weekly 2026-W01 to b@example.com has not been sent: the mail server is off. It is retried automatically; check with: readership doctor',
    'weekly 2026-W01 was not delivered to D@example.com: 550 no such user. When that is fixed: readership report send weekly --period 2026-W01 --project p --force --to D@example.com',
    'weekly 2026-W02 was not delivered to d@example.com: 550 no such user. When that is fixed: readership report send weekly --period 2026-W02 --project p --force --to d@example.com',
    "alert export 2026-01-05T00:00:00.000Z may or may not have reached ops@example.com. Ask the recipient, then: readership report resolve alert --period 'export 2026-01-05T00:00:00.000Z' --delivered ops@example.com, or --not-delivered ops@example.com",
    'weekly 2025-W40 may or may not have reached u@example.com. Ask the recipient, then: readership report resolve weekly --period 2025-W40 --project p --delivered u@example.com, or --not-delivered u@example.com',
    'weekly 2026-W01 may or may not have reached a@example.com. Ask the recipient, then: readership report resolve weekly --period 2026-W01 --project p --delivered a@example.com, or --not-delivered a@example.com',
  ]);
  expect((await cli(KEY, 'status')).stdout).toMatch(/messages +1 unknown/);
});
