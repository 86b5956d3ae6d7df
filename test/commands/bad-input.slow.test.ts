import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Fault } from '../sandbox/faulty-sandbox.js';
import { answerOf } from '../duckdb.js';
import { callCli, type CliResult, runCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { otherProcess } from '../state/other-process.js';
import {
  daysAgo,
  endedWith,
  env,
  expectCleanEnd,
  KEY,
  historyFile,
  replaceIn,
  serveSandbox,
  workspaceOf,
} from './workspace.js';

/** Everything stored that a failed command must leave unchanged: rows per day, and loaded totals. */
const STORED = `
  SELECT count(*)::INTEGER AS rows, coalesce(bit_xor(hash(project, day, path, human, ai, total)), 0)::VARCHAR AS fingerprint FROM page_views
  UNION ALL
  SELECT count(*)::INTEGER, coalesce(bit_xor(hash(project, day, human, ai, total, loaded_at)), 0)::VARCHAR FROM days WHERE loaded_at IS NOT NULL`;

interface BadInput {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly fault?: Fault;
  readonly spoil?: (directory: string) => Promise<unknown>;
}

const typed = (...args: string[]): BadInput => ({ args });
const changed = (from: string | RegExp, to: string): BadInput => ({
  spoil: (directory) => replaceIn(directory, from, to),
});
const WRONG = 'adm_wrong-key-987';
const WRONG_KEY: BadInput = { env: { READERSHIP_API_KEY: WRONG } };
const DEAD_HOST = changed(/baseUrl: .*/, 'baseUrl: http://127.0.0.1:9');
const BACKWARDS = typed('--from=2026-02-01', '--to=2026-01-01');
const LIMITED: Fault = { on: 'views', kind: 'rate-limit', seconds: 3600 };
const removed = (cwd: string) => rm(join(cwd, 'readership.yaml'));

/** What is wrong, the exit code, and what the message must say, including the next step. */
const CASES: readonly (readonly [what: string, code: number, says: RegExp, input: BadInput])[] = [
  ['a bad key', 1, /401.+READERSHIP_API_KEY is wrong or has expired/s, WRONG_KEY],
  ['no key', 2, /No API key for project prj_sandbox: set READERSHIP_API_KEY/, { env: {} }],
  ['a dead host', 75, /no connection.+Check the address/s, DEAD_HOST],
  ['an unknown project', 1, /400.+there is no project prj_other/s, changed('prj_sandbox', 'prj_other')],
  ['a rate limit', 75, /rate limit has been reached.+wait 1 h 0 min/s, { fault: LIMITED }],
  ['--reload without --from', 2, /--reload needs --from.+readership audit/s, typed('--reload')],
  ['a wrong range', 2, /--from 2026-02-01 is after --to 2026-01-01/, BACKWARDS],
  ['a later day', 2, /--to 2999-01-01 has not ended yet.+last day to load is/s, typed('--to', '2999-01-01')],
  ['a day that does not exist', 2, /2026-02-30.+YYYY-MM-DD/s, typed('--from', '2026-02-30')],
  ['another project', 2, /No project prj_x.+there is prj_sandbox/s, typed('--project', 'prj_x')],
  ['no configuration', 2, /no readership\.yaml.+readership init.+run --sandbox/s, { spoil: removed }],
  ['an unknown option', 2, /unknown option '--fast'.+--help/s, typed('--fast')],
];

describe('bad input: one clear message, the documented exit code, no stored data lost', () => {
  let loaded: string;
  beforeAll(async () => {
    loaded = await workspaceOf(await serveSandbox());
    endedWith(0, await callCli(['export'], { cwd: loaded, env }));
  });

  /** A copy of the loaded workspace, with its own server. */
  async function copyOf(fault?: Fault): Promise<string> {
    const sandbox = await serveSandbox();
    if (fault !== undefined) sandbox.setFaults([fault]);
    const directory = await tempDir();
    await cp(loaded, directory, { recursive: true });
    await replaceIn(directory, /baseUrl: .*/, `baseUrl: ${sandbox.baseUrl}`);
    return directory;
  }

  function expectOneMessage({ code, stdout, stderr }: CliResult, expected: number, says: RegExp): void {
    expect(code, stderr).toBe(expected);
    expect(stderr).toMatch(says);
    const messages = stderr.match(/^(error:|(export|publish) (failed|could not finish))/gm) ?? [];
    expect(messages.length).toBeLessThan(2);
    expect(stderr.split('\n').filter((line) => !line.endsWith(' left).')).length).toBeLessThan(10);
    expect(stdout).not.toMatch(/could not|error/i);
  }

  it('a second process exits 75 after a wait, naming the first; readers do not wait', async () => {
    const directory = await copyOf();
    const holder = await otherProcess(join(directory, 'data'));
    await holder.does('acquire', 0);
    const writing = runCli(['export'], { cwd: directory, env });
    const reading = await runCli(['sql', 'SELECT count(*) AS days FROM site_days'], { cwd: directory });
    expect(reading).toMatchObject({ code: 0, stdout: 'days\n12\n' });
    const result = await writing;
    expectOneMessage(result, 75, new RegExp(`held by .readership export. .+${holder.pid}`));
    await holder.does('release');
    await expectCleanEnd(directory, result);
    expect(await callCli(['export'], { cwd: directory, env })).toMatchObject({ code: 0 });
  });

  it.concurrent.each(CASES)('%s exits %i', async (_, code, says, { fault, spoil, args = [], ...given }) => {
    const directory = await copyOf(fault);
    await spoil?.(directory);
    const before = await answerOf(historyFile(directory), STORED);
    const result = await callCli(['export', ...args], { cwd: directory, env, ...given });
    expectOneMessage(result, code, says);
    expect(await answerOf(historyFile(directory), STORED)).toEqual(before);
    for (const key of [KEY, WRONG]) await expectCleanEnd(directory, result, key);
  });

  it.concurrent('a command that does not exist exits 2', async () => {
    const result = await runCli(['explode'], { cwd: await tempDir() });
    expectOneMessage(result, 2, /unknown command 'explode'.+--help/s);
  });

  it.concurrent('a range before the first day loads no wrong data', async () => {
    const directory = await copyOf();
    const range = ['--from', daysAgo(20), '--to', daysAgo(15)];
    const { stdout } = endedWith(0, await callCli(['export', ...range], { cwd: directory, env }));
    expect(stdout).toMatch(/nothing to load: the history begins on /);
    const wrong = `SELECT count(*) AS days FROM site_days WHERE day <= '${daysAgo(15)}'`;
    expect((await runCli(['sql', wrong], { cwd: directory })).stdout).toBe('days\n0\n');
  });
});
