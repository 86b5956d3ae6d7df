import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test, vi } from 'vitest';
import { closeNow, newStore } from '../open-history.js';
import { callCli, type CliResult, runCli, startCli } from '../run-cli.js';
import { createState, openState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/place.js';
import { tempDir } from '../temp-dir.js';
import { datasetRows } from '../history/dataset/dataset.js';
import { page, store } from '../history/stored-days.js';
import { callCleanly, endedWith, env, KEY, historyFile, workspaceOf } from './workspace.js';

const NOWHERE = { baseUrl: 'http://127.0.0.1:1', projectId: 'prj_1' };

/** A workspace with one stored day of views, and no dataset. */
async function setUp(settings = ''): Promise<string> {
  const cwd = await workspaceOf(NOWHERE, settings);
  await load(cwd, { '2026-11-01': [page('/a', 3, 1)] });
  return cwd;
}

/** Loads days into the history of a workspace. */
async function load(cwd: string, days: Parameters<typeof store>[2]): Promise<void> {
  const dataDir = join(cwd, 'data');
  if ((await openState(dataDir)) === undefined) (await createState(dataDir, await placeOf(dataDir))).close();
  const history = await newStore(historyFile(cwd));
  await store(history, 'prj_1', days);
  await closeNow(history);
}

const publish = (cwd: string, ...args: string[]) => callCleanly(['publish', ...args], { cwd });

test('a command that fails before anything is loaded writes no empty history', async () => {
  const cwd = await workspaceOf(NOWHERE);
  const failed = endedWith(2, await callCleanly(['jobs', 'settle', '1', '--merged'], { cwd }));
  expect(failed.stderr).toContain('There is no job 1.');
  const { stderr } = endedWith(1, await callCleanly(['status'], { cwd }));
  expect(stderr).toContain('There is no history yet');
});

const NOT_A_DIRECTORY = 'not a local directory: write a path, in full instead of with ~';

const VIEWS = [
  JSON.stringify({ project: 'prj_1', day: '2026-11-01', path: '/a', page: '/a', human: 3, ai: 1, total: 4 }),
];

/** One sentence says why the dataset is not written. */
function expectFailure(result: CliResult, words: RegExp): void {
  const { stdout, stderr } = endedWith(1, result);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^publish failed: The Parquet dataset \S+ is not up to date: [^\n]+\.\n$/);
  expect(stderr.trimEnd()).toMatch(words);
}

describe('publish --parquet', () => {
  it('writes a dataset, says what it wrote, and writes all of it on each call', async () => {
    const cwd = await setUp();
    for (const [call, again] of ['first', 'second'].entries()) {
      const { code, stdout, stderr } = await publish(cwd, '--parquet', 'out/dataset');
      expect({ code, stderr }, again).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^out\/dataset {2}2 files, 2 written, 0 removed\n$/);
      expect((await datasetRows(join(cwd, 'out/dataset'))).views, `call ${call}`).toEqual(VIEWS);
    }
  });

  it('is not needed if the configuration names a dataset, relative to itself', async () => {
    const cwd = await setUp('publish: { parquet: dataset }\n');
    const elsewhere = await tempDir();
    endedWith(0, await publish(elsewhere, '--config', join(cwd, 'readership.yaml')));
    expect((await datasetRows(join(cwd, 'dataset'))).views).toEqual(VIEWS);
    expect(await readdir(elsewhere)).toEqual([]);
  });

  it('to a place that is a file says so in one sentence, and exits 1; without a place, publish says where to name one', async () => {
    const cwd = await setUp();
    const failed = await publish(cwd, '--parquet', 'readership.yaml');
    expectFailure(failed, /; name a directory\.$/);
    const failure = 'publish has failed since';
    expect((await callCli(['status'], { cwd })).stdout).toContain(failure);
    expect((await publish(cwd)).stderr).toContain('set publish.parquet in readership.yaml, or name one');
    endedWith(0, await publish(cwd, '--parquet', 'dataset'));
    expect((await callCli(['status'], { cwd })).stdout).not.toContain(failure);
  });

  it('is what creates a missing directory again; run does not, for its disk may be unmounted', async () => {
    const cwd = await setUp('publish: { parquet: dataset }\n');
    const dataset = join(cwd, 'dataset');
    endedWith(0, await publish(cwd));
    await rm(dataset, { recursive: true });
    await load(cwd, { '2026-11-02': [] });
    const { stderr } = endedWith(1, await callCleanly(['run'], { cwd, env }));
    expect(stderr).toMatch(/^publish failed: The Parquet dataset \S+ is missing; .*: readership publish$/m);
    expect(await readdir(cwd)).not.toContain('dataset');
    expect((await callCli(['doctor'], { cwd })).stdout).toMatch(/fail +dataset +[^\n]*dataset is missing/);
    endedWith(0, await publish(cwd));
    expect((await datasetRows(dataset)).days).toHaveLength(2);
  });

  it.each([
    ['', NOT_A_DIRECTORY],
    ['s3://bucket/dataset', NOT_A_DIRECTORY],
    ['~/dataset', NOT_A_DIRECTORY],
    ['--sandbox', "'--parquet <directory>' argument missing"],
  ])('rejects %j before anything is done', async (directory, words) => {
    const cwd = await setUp();
    const { code, stderr } = await publish(cwd, '--parquet', directory);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(await readdir(join(cwd, 'data'))).toEqual(['history.duckdb', 'state.db', 'worker.lock']);
  });

  it.each([
    ['parquet: s3://bucket/dataset', 'parquet: not a local directory: write a path, '],
    ['parquet: gs://bucket/dataset', 'parquet: not a local directory: write a path, '],
    ['then: rclone sync', 'then: runs after the dataset changed: set publish.parquet too'],
  ])('in the configuration: %s is reported with its line', async (setting, words) => {
    const cwd = await workspaceOf(NOWHERE, `publish:\n  ${setting}\n`);
    const { stderr } = endedWith(2, await publish(cwd));
    expect(stderr).toContain(`readership.yaml:4  publish.${words}`);
    if (setting.startsWith('parquet')) expect(stderr).toContain('set publish.then: docs/scale.md');
    expect(stderr.trimEnd().split('\n')).toHaveLength(2);
  });
});

describe('publish.then', () => {
  const withThen = (command: string) =>
    setUp(`publish:\n  parquet: dataset\n  then: ${JSON.stringify(command)}\n`);

  it('has no secrets in its environment, and what it prints is redacted on standard error', async () => {
    const cwd = await withThen('env > variables; cat .env; echo also here >&2');
    await writeFile(join(cwd, '.env'), `READERSHIP_API_KEY=${KEY}\nONLY_IN_FILE=1\n`, { mode: 0o600 });
    const smtp = 'smtp://user:a-long-password@127.0.0.1';
    const { code, stdout, stderr } = await runCli(['publish'], {
      cwd,
      env: { READERSHIP_SMTP_URL: smtp, AWS_PROFILE: 'docs' },
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('2 files') as string });
    expect(stderr.split('\n').sort()).toEqual([
      '',
      'ONLY_IN_FILE=1',
      'READERSHIP_API_KEY=[redacted]',
      'also here',
    ]);
    const variables = await readFile(join(cwd, 'variables'), 'utf8');
    expect(variables).toContain('AWS_PROFILE=docs');
    expect(variables).toContain('PATH=');
    for (const secret of ['READERSHIP', KEY, 'a-long-password', 'ONLY_IN_FILE'])
      expect(variables).not.toContain(secret);
  });

  it('that fails makes the command fail, in one sentence, and runs again with the next one', async () => {
    const cwd = await withThen('echo once >> runs; test -e exists');
    const { stdout, stderr } = endedWith(1, await callCleanly(['publish'], { cwd }));
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^publish failed: The Parquet dataset \S+ is written, but publish\.then ended with exit code 1; [^\n]+\.\n$/,
    );
    await writeFile(join(cwd, 'exists'), '');
    endedWith(0, await publish(cwd));
    expect(await readFile(join(cwd, 'runs'), 'utf8')).toBe('once\nonce\n');
  });

  it('ends within seconds of SIGTERM, with its children', async () => {
    const cwd = await withThen('sleep 600 & echo $! > pid; echo begun; wait');
    const { child, result, until } = startCli(['publish'], { cwd });
    await until(/begun/);
    const toldAtMs = performance.now();
    child.kill('SIGTERM');
    expect((await result).code).not.toBe(0);
    expect(performance.now() - toldAtMs).toBeLessThan(5_000);
    const pid = Number(await readFile(join(cwd, 'pid'), 'utf8'));
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), 5_000);
  });

  it('does not run in the sandbox, or for another directory', async () => {
    const cwd = await withThen('echo >> runs');
    endedWith(0, await publish(cwd, '--sandbox', '--parquet', 'dataset'));
    endedWith(0, await publish(cwd, '--parquet', 'other'));
    expect(await readdir(cwd)).not.toContain('runs');
    endedWith(0, await publish(cwd, '--parquet', './dataset'));
    expect(await readdir(cwd)).toContain('runs');
  });

  it('does not run in a copy of the workspace', async () => {
    const cwd = await withThen('echo >> runs');
    endedWith(0, await publish(cwd));
    const copy = await tempDir();
    await cp(cwd, copy, { recursive: true });
    await rm(join(copy, 'runs'));
    const { stderr } = endedWith(1, await publish(copy));
    expect(stderr).toMatch(/^publish failed: Nothing is sent from /);
    expect(await readdir(copy)).not.toContain('runs');
  });
});
