import { cp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { adopt } from '../../src/state/witness.js';
import { placeOf } from '../../src/state/workspace.js';
import { daysAgo, historyFile, serveSandbox, workspaceOf } from '../commands/workspace.js';
import { callCli, type CliOptions, type CliResult, startCli } from '../run-cli.js';
import type { Sandbox, WatchedOptions } from '../sandbox/faulty-sandbox.js';
import { openTestState } from '../open-state.js';
import { dotEnv, KEY, PING_ID, smtpUrl } from './marks.js';
import { tracesLeft } from './search.js';

/** The recipients of the reports; others may be added. */
export const RECIPIENT = 'lead@example.com';

export interface Surroundings {
  readonly platform: Pick<Sandbox, 'baseUrl' | 'projectId'>;
  readonly smtp?: string;
  readonly pings?: string;
  readonly recipients?: readonly string[];
}

const settingsOf = ({ pings, recipients = [RECIPIENT] }: Surroundings): string => `
improve: { mode: apply, minWeeklyViews: 1, maxJobsPerWeek: 1000, cooldownDays: 0 }
mail: { from: docs@example.com }
channels: { chat: { kind: slack } }
reports: { weekly: { to: [${[...recipients, 'chat'].join()}] }, improve: { to: [${RECIPIENT}] } }
publish: { parquet: dataset }
alerts: { to: [ops@example.com], pingUrl: '${pings ?? 'http://127.0.0.1:1'}/${PING_ID}' }
`;

/** A workspace with the marked secrets in its `.env`, and with the data of another workspace, if given, but not its dataset. */
export async function markedWorkspace(surroundings: Surroundings, like?: string): Promise<string> {
  const cwd = await workspaceOf(surroundings.platform, settingsOf(surroundings));
  await writeFile(join(cwd, '.env'), dotEnv(surroundings.smtp ?? smtpUrl(1), surroundings.pings));
  if (like !== undefined) {
    await rm(join(cwd, 'data'), { recursive: true, force: true });
    await cp(join(like, 'data'), join(cwd, 'data'), { recursive: true });
    await sendFromCopy(cwd);
  }
  return cwd;
}

/** What `adopt` records, without a process. */
async function sendFromCopy(cwd: string): Promise<void> {
  const { dataDir, state, worker, close } = await openTestState(dirname(historyFile(cwd)));
  await adopt({ state, worker, witness: undefined }, await placeOf(dataDir));
  await close();
}

/** A sandbox that accepts only the marked key, with enough weeks for pages to be flagged. */
export const markedSandbox = (options: Partial<WatchedOptions> = {}): Promise<Sandbox> =>
  serveSandbox({ apiKey: KEY, firstDay: daysAgo(35), pages: 40, jobSeconds: 3600, ...options });

/** Runs a command to its end, the service until it has done what is due, and the sandbox until it serves. */
export async function runToEnd(args: readonly string[], options: CliOptions, run = callCli) {
  const [command] = args;
  if (!['start', 'sandbox', 'serve'].includes(command ?? '')) return run(args, options);
  const stays = startCli(args, options);
  await stays.until(command === 'start' ? /"outcome":/ : /Ctrl-C to stop/);
  stays.child.kill('SIGTERM');
  return stays.result;
}

/** Checks that no trace of the secrets is in what the command wrote or in any file of the workspace. */
export async function expectNoTrace(cwd: string, result: Pick<CliResult, 'stdout' | 'stderr'>, what: string) {
  expect({ what, traces: await tracesLeft(cwd, result) }).toEqual({ what, traces: [] });
}
