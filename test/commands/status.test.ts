import { expect, it } from 'vitest';
import { z } from 'zod';
import { answerOf } from '../duckdb.js';
import { execute, inWarehouse } from '../open-warehouse.js';
import { callCli } from '../run-cli.js';
import {
  callCleanly,
  endedWith,
  env,
  KEY,
  liveFile,
  platformOf,
  platformWorkspace,
  serveSandbox,
  workspaceOf,
} from './workspace.js';

const statusSchema = z.object({
  diskFreeBytes: z.int().positive(),
  runs: z.array(z.object({ step: z.string(), outcome: z.string() })),
  unknownDeliveries: z.array(z.object({ recipient: z.string() })),
  waitingDeliveries: z.array(z.object({ recipient: z.string(), note: z.string() })),
  unconfirmedJobs: z.array(z.object({ id: z.int() })),
  unconfirmedMessages: z.array(z.object({ id: z.int(), job: z.int() })),
  needs: z.array(z.string()),
});

const DELIVERIES = `
  INSERT INTO deliveries BY NAME
  SELECT *, 'smtp' AS via, format('<{}{}>', recipient, period) AS message_id, 1 AS attempts
  FROM (VALUES
    -- Old emails that no longer need attention: one may have arrived, one is not retried anymore, and one arrived.
    ('weekly', 'p', '2025-W40', 'u@example.com', 'unknown', NULL, TIMESTAMP '2025-10-06'),
    ('weekly', 'p', '2025-W40', 'w@example.com', 'waiting', NULL, TIMESTAMP '2025-10-06'),
    ('weekly', 'p', '2025-W40', 'd@example.com', 'sent', NULL, TIMESTAMP '2025-10-06'),
    ('weekly', 'p', '2026-W01', 'a@example.com', 'unknown', NULL, $lost::TIMESTAMP),
    ('alert', '-', 'export 2026-01-05T00:00:00.000Z', 'ops@example.com', 'unknown', NULL, $lost::TIMESTAMP),
    ('weekly', 'p', '2026-W01', 'b@example.com', 'waiting', 'the mail server is off', $lost::TIMESTAMP),
    ('weekly', 'p', '2026-W01', 'd@example.com', 'failed', '550 no such user', $lost::TIMESTAMP),
    ('weekly', 'p', '2026-W01', 'removed@example.com', 'failed', '550 no such user', $lost::TIMESTAMP)
  ) AS given (report, project, period, recipient, state, note, tried_at)`;

/** Emails, a job and a message that may or may not have arrived, and a pull request that is no longer found. */
const LOST = [
  DELIVERIES,
  "INSERT INTO agent_jobs BY NAME SELECT 7 AS id, $project AS project, '/lost' AS path, 'unconfirmed' AS state, '' AS reason, '' AS prompt, TIMESTAMP '2026-01-05' AS planned_at, 0 AS polls",
  "INSERT INTO pull_requests BY NAME SELECT 7 AS job, TIMESTAMP '2026-01-05' AS checked_at, checked_at AS next_check_at, 'the code host answered 404.' AS problem",
  "INSERT INTO agent_messages BY NAME SELECT 3 AS id, 7 AS job, 'unconfirmed' AS state, 'typed' AS origin, '' AS prompt, TIMESTAMP '2026-01-05' AS planned_at",
];

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

  // A failure shows even though it changed nothing else, and disappears once it is over.
  await cli('wrong-key', 'export');
  const failed = await status();
  expect(failed.code).toBe(1);
  expect(failed.needs).toContainEqual(expect.stringMatching(/^export has failed since .+ UTC: .+key/));
  await cli(KEY, 'export');
  expect(await status()).toMatchObject({ code: 0, needs: [] });

  await inWarehouse(liveFile(cwd), async (warehouse) => {
    for (const statement of LOST)
      await execute(warehouse, statement, { project: sandbox.projectId, lost: new Date() });
  });
  await cli(KEY, 'publish');
  const unknown = await status();
  expect(unknown).toMatchObject({
    code: 1,
    unknownDeliveries: [{ recipient: 'ops@example.com' }, { recipient: 'a@example.com' }],
    waitingDeliveries: [{ recipient: 'b@example.com', note: 'the mail server is off' }],
  });
  expect(unknown).toMatchObject({ unconfirmedJobs: [{ id: 7 }], unconfirmedMessages: [{ id: 3, job: 7 }] });
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
    'weekly 2026-W01 was not delivered to d@example.com: 550 no such user. When that is fixed: readership report send weekly --period 2026-W01 --project p --force --to d@example.com',
    "alert export 2026-01-05T00:00:00.000Z may or may not have reached ops@example.com. Ask the recipient, then: readership report resolve alert --period 'export 2026-01-05T00:00:00.000Z' --delivered ops@example.com, or --not-delivered ops@example.com",
    'weekly 2026-W01 may or may not have reached a@example.com. Ask the recipient, then: readership report resolve weekly --period 2026-W01 --project p --delivered a@example.com, or --not-delivered a@example.com',
  ]);
  expect((await cli(KEY, 'status')).stdout).toMatch(/messages +1 unconfirmed/);
});

it('status advises to compare the history with the platform after a week without, and not before', async () => {
  const { projectId, baseUrl } = await serveSandbox();
  const cwd = await workspaceOf({ projectId, baseUrl });
  const cli = (...args: string[]) => callCli(args, { cwd, env });
  const verified = async () => /verified .+/.exec((await cli('status')).stdout)?.[0];
  expect(await cli('export')).toMatchObject({ code: 0 });
  await answerOf(liveFile(cwd), 'DELETE FROM verifications');
  await cli('publish');
  expect(await verified()).toBeUndefined();
  await answerOf(liveFile(cwd), 'UPDATE day_loads SET attempted_at = attempted_at - INTERVAL 8 DAY');
  await cli('publish');
  expect(await verified()).toMatch(/not compared with the platform since .+: readership audit$/);
  expect(await cli('audit')).toMatchObject({ code: 0 });
  expect(await verified()).toBeUndefined();
});

it('status does not report yesterday as missing for a site that an export found to have no views yet', async () => {
  const cwd = await platformWorkspace(await platformOf(0, 0), "schedule: { export: '0 0 * * *' }\n");
  const cli = (...args: string[]) => callCli(args, { cwd, env });
  const missing = /yesterday has been missing since/;
  await cli('publish');
  expect(endedWith(1, await cli('status')).stdout).toMatch(missing);
  expect(await cli('export')).toMatchObject({ code: 0 });
  expect(await cli('status')).toMatchObject({ code: 0 });
  // It tells nothing about the night after it.
  await answerOf(liveFile(cwd), 'UPDATE runs SET started_at = started_at - INTERVAL 1 DAY');
  await cli('publish');
  expect((await cli('status')).stdout).toMatch(missing);
  expect(await cli('export')).toMatchObject({ code: 0 });
  expect(await cli('status')).toMatchObject({ code: 0 });
});
