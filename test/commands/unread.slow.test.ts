import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readRecentRuns } from '../../src/state/runs.js';
import { openTestState } from '../open-state.js';
import { startCli } from '../run-cli.js';
import { freePort } from '../web/site.js';
import { daysAgo, endedWith, env, historyFile, platformOf, platformWorkspace } from './workspace.js';
import { useSmallReports } from '../small-reports.js';

const DAYS = 12;

const openWorkspace = async () =>
  useSmallReports(
    await platformWorkspace(await platformOf(DAYS, 40), `history: { start: ${daysAgo(DAYS)} }\n`),
  );

/** Starts a command, and leaves when it has printed something, as `head` does. */
function startUnread(args: readonly string[], cwd: string) {
  const command = startCli(args, { cwd, env });
  // Unread data would make it a reset connection, which has another code.
  command.child.stdout.once('data', () => command.child.stdout.destroy());
  return command;
}

it('start goes on with its steps when nobody reads its log any more, until it is stopped', async () => {
  const cwd = await openWorkspace();
  const service = startUnread(['start'], cwd);
  await service.until(/Standard output is gone \((EPIPE|ECONNRESET)\)/);
  await expect.poll(() => existsSync(historyFile(cwd)), { timeout: 120_000 }).toBe(true);
  expect(service.child.exitCode).toBeNull();
  service.child.kill('SIGTERM');
  const { stderr } = endedWith(0, await service.result);
  expect(stderr.match(/Standard output is gone/g)).toHaveLength(1);
});

it('run finishes when nobody reads what it prints any more', async () => {
  const cwd = await openWorkspace();
  endedWith(0, await startUnread(['run', '--json'], cwd).result);
  const { state, close } = await openTestState(join(cwd, 'data'));
  expect(readRecentRuns(state).map(({ step, outcome }) => [step, outcome])).toEqual(
    expect.arrayContaining(['export', 'improve', 'poll', 'report'].map((step) => [step, 'done'])),
  );
  await close();
});

it('serve answers although nobody has ever read what it prints', async () => {
  const cwd = await openWorkspace();
  endedWith(0, await startCli(['export'], { cwd, env }).result);
  // It prints its address to nobody.
  const port = await freePort();
  const web = startCli(['serve', '--port', String(port)], { cwd, env });
  web.child.stdout.destroy();
  await web.until(/Standard output is gone/);
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  web.child.kill('SIGTERM');
  endedWith(0, await web.result);
});
