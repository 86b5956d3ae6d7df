import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import type { Sandbox } from './sandbox/faulty-sandbox.js';
import { daysAgo, KEY, serveSandbox, workspaceOf } from './commands/workspace.js';
import { tempDir } from './temp-dir.js';
import { useSmallReports } from './small-reports.js';

const ROOT = join(import.meta.dirname, '..');
const workflow = z.object({
  concurrency: z.object({ 'cancel-in-progress': z.literal(false) }),
  // By default, Actions runs `bash -e`, and a failed `tar | split` would save half a state.
  defaults: z.object({ run: z.object({ shell: z.literal('bash') }) }),
  jobs: z.object({
    readership: z.object({
      steps: z.array(
        z.object({ name: z.string().optional(), if: z.string().optional(), run: z.string().optional() }),
      ),
    }),
  }),
});

/** As `toJSON(secrets)` writes them: also a channel's, with what a shell would interpret. */
const SECRETS = JSON.stringify({
  github_token: 'a-token-of-the-run',
  READERSHIP_API_KEY: KEY,
  CHAT_URL: "https://chat.example.com/$(id)/'a'\"b",
});

let remote: string;
let clone: string;
let platform: Sandbox;
let scripts: ReadonlyMap<string, string>;

beforeAll(async () => {
  const { jobs } = workflow.parse(parse(await readFile(join(ROOT, 'deploy/github-actions.yml'), 'utf8')));
  scripts = new Map(jobs.readership.steps.map(({ name = '', run = '' }) => [name, run]));
  // It also saves after a failed run, but only if it restored the state.
  expect(jobs.readership.steps.find(({ name }) => name === 'Save the state')?.if).toBe(
    "always() && steps.state.outcome == 'success'",
  );
  platform = await serveSandbox({ firstDay: daysAgo(35), pages: 10, jobSeconds: 3600 });
  const workspace = await workspaceOf(
    platform,
    'improve: { mode: apply, minWeeklyViews: 1 }\nmail: { from: docs@example.com }\nreports: { weekly: { to: [docs@example.com] } }\n',
  );
  await useSmallReports(workspace);
  await rm(join(workspace, 'data'), { recursive: true });
  remote = await tempDir();
  clone = join(await tempDir(), 'site');
  await shell(remote, 'git init --quiet --bare --initial-branch main');
  await shell(
    workspace,
    `git init --quiet --initial-branch main && git add --all && git -c user.name=docs -c user.email=docs@example.com commit --quiet -m Begin && git push --quiet ${remote} main`,
  );
});

/** Runs a script as Actions does when the shell is named. */
async function shell(cwd: string, script: string, env: NodeJS.ProcessEnv = {}) {
  try {
    const { stdout, stderr } = await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', script], {
      cwd,
      env: { PATH: process.env['PATH'], HOME: cwd, ...env },
    });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = z
      .looseObject({ code: z.number(), stdout: z.string(), stderr: z.string() })
      .parse(error);
    return { code, output: stdout + stderr };
  }
}

/**
 * The steps of a run, one after the other, in a new clone on a new runner. Actions always clones to the same path. If the
 * run `dies`, its runner does so before it saves; the commands in `before` are run in each shell before its script.
 */
async function play({ begin = false, command = 'run --paused-ok', dies = false, before = '' } = {}) {
  const [temp, bin] = [await tempDir(), await tempDir()];
  await rm(clone, { recursive: true, force: true });
  await mkdir(clone);
  await shell(clone, `git clone --quiet --depth 1 file://${remote} .`);
  const program = `#!/bin/sh\nexec ${process.execPath} ${join(ROOT, 'dist/cli.js')} "$@"\n`;
  await writeFile(join(bin, 'readership'), program, { mode: 0o755 });
  const env = {
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    ...{ RUNNER_TEMP: temp, BEGIN: String(begin), COMMAND: command, SECRETS: SECRETS },
  };
  const step = (name: string) =>
    shell(clone, `${before}\n${scripts.get(name) ?? expect.fail(`no step ${name}`)}`, env);
  const taken = await step('Take the state');
  if (taken.code !== 0) return taken;
  const ran = await step('Run');
  if (dies) return ran;
  const saved = await step('Save the state');
  return saved.code === 0 ? ran : saved;
}

const says = (words: string): string => expect.stringContaining(words) as string;
const stateIn = async (): Promise<string> =>
  (await shell(remote, 'git rev-parse readership-state')).output.trim();
const created = (): number => platform.inspect().requests.counts.create?.['201'] ?? 0;

describe('deploy/github-actions.yml', () => {
  it('refuses to begin without `begin`, keeps its state, and does nothing twice', async () => {
    const unknown = { code: 1, output: says('no branch readership-state') };
    expect(await play()).toMatchObject(unknown);
    const first = await play({ begin: true });
    expect(first, first.output).toMatchObject({ code: 0 });
    const jobs = created();
    expect(jobs).toBeGreaterThan(0);
    // The runner dies: what it did is unknown, so nothing more is done.
    const second = await play({ dies: true });
    expect(second, second.output).toMatchObject({ code: 0, output: says('already written to') });
    expect(await play()).toMatchObject({ code: 1, output: says('without saving its state') });
    await shell(remote, 'git branch -D readership-running');
    expect(await play({ command: 'jobs' })).toMatchObject({ code: 0, output: says('active') });
    const command = `sql "SELECT 'two  words' AS said, count(*) > 0 AS has_views FROM page_views" --format json`;
    const asked = await play({ command });
    expect(asked, asked.output).toMatchObject({ code: 0, output: says('"said":"two  words"') });

    // It cannot be packed completely: the saved state is kept.
    const before = await stateIn();
    const tar = 'tar() { [ "$1" = --extract ] || return 1; command tar "$@"; }';
    expect(await play({ command: 'jobs', before: tar })).toMatchObject({ code: 1 });
    expect(await stateIn()).toBe(before);
    await shell(remote, 'git branch -D readership-running');

    // The state is lost.
    await shell(remote, 'git branch -D readership-state');
    expect(await play()).toMatchObject(unknown);
    expect(created()).toBe(jobs);
  });
});
