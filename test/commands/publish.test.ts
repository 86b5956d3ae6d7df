import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { closeNow, newStore } from '../open-history.js';
import { createState } from '../../src/state/open.js';
import { placeOf } from '../../src/state/workspace.js';
import { tempDir } from '../temp-dir.js';
import { datasetRows } from '../history/dataset/dataset.js';
import { page, store } from '../history/stored-days.js';
import { callCleanly, endedWith, historyFile, KEY, workspaceOf } from './workspace.js';

// What is in a dataset, and when publish.then runs, is in test/history/dataset and test/steps.

const NOWHERE = { baseUrl: 'http://127.0.0.1:1', projectId: 'prj_1' };

/** A workspace with one stored day of views. */
async function setUp(settings = ''): Promise<string> {
  const cwd = await workspaceOf(NOWHERE, settings);
  const dataDir = join(cwd, 'data');
  (await createState(dataDir, await placeOf(dataDir))).close();
  const history = await newStore(historyFile(cwd));
  await store(history, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  await closeNow(history);
  return cwd;
}

const publish = (cwd: string, ...args: string[]) => callCleanly(['publish', ...args], { cwd });

const VIEWS = [
  JSON.stringify({ project: 'prj_1', day: '2026-11-01', path: '/a', page: '/a', human: 3, ai: 1, total: 4 }),
];

it('a command that fails before anything is loaded writes no empty history', async () => {
  const cwd = await workspaceOf(NOWHERE);
  const failed = endedWith(2, await callCleanly(['jobs', 'settle', '1', '--merged'], { cwd }));
  expect(failed.stderr).toContain('There is no job 1.');
  const { stderr } = endedWith(1, await callCleanly(['status'], { cwd }));
  expect(stderr).toContain('There is no history yet');
});

it('publish writes all of the dataset on each call, where the command or the configuration says', async () => {
  const cwd = await setUp('publish: { parquet: dataset }\n');
  for (const again of ['first', 'second']) {
    const { code, stdout, stderr } = await publish(cwd, '--parquet', 'out/dataset');
    expect({ code, stderr }, again).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe('out/dataset  2 files, 2 written, 0 removed\n');
    expect((await datasetRows(join(cwd, 'out/dataset'))).views, again).toEqual(VIEWS);
  }
  const elsewhere = await tempDir();
  endedWith(0, await publish(elsewhere, '--config', join(cwd, 'readership.yaml')));
  expect((await datasetRows(join(cwd, 'dataset'))).views).toEqual(VIEWS);
  expect(await readdir(elsewhere)).toEqual([]);
});

it('publish says in one sentence why it failed, exits 1, and status names the failure until it is over', async () => {
  const cwd = await setUp();
  const { stdout, stderr } = endedWith(1, await publish(cwd, '--parquet', 'readership.yaml'));
  expect(stdout).toBe('');
  expect(stderr).toMatch(
    /^publish failed: The Parquet dataset \S+ is not up to date: [^\n]+; name a directory\.\n$/,
  );
  const status = async () => (await callCleanly(['status'], { cwd })).stdout;
  expect(await status()).toContain('publish has failed since');
  endedWith(0, await publish(cwd, '--parquet', 'dataset'));
  expect(await status()).not.toContain('publish has failed since');
});

it('publish refuses what is no directory, or to write nowhere, before anything is done', async () => {
  const cwd = await workspaceOf(NOWHERE);
  for (const [args, words] of [
    [[], 'set publish.parquet in readership.yaml, or name one'],
    [['--parquet', ''], 'not a local directory: write a path, in full instead of with ~'],
    [['--parquet', 's3://bucket/dataset'], 'set publish.then: docs/scale.md'],
    [['--parquet', '~/dataset'], 'not a local directory'],
    [['--parquet', '--sandbox'], "'--parquet <directory>' argument missing"],
  ] as const)
    expect(endedWith(2, await publish(cwd, ...args)).stderr).toContain(words);
  expect(await readdir(cwd)).toEqual(['data', 'readership.yaml']);
});

it('publish.then runs without secrets, what it prints is redacted, and it is for the configured directory only', async () => {
  const command = 'echo >> runs; env > variables; cat .env; echo also here >&2';
  const cwd = await setUp(`publish:\n  parquet: dataset\n  then: ${JSON.stringify(command)}\n`);
  await writeFile(join(cwd, '.env'), `READERSHIP_API_KEY=${KEY}\nONLY_IN_FILE=1\n`, { mode: 0o600 });
  endedWith(0, await publish(cwd, '--sandbox', '--parquet', 'dataset'));
  endedWith(0, await publish(cwd, '--parquet', 'other'));
  expect(await readdir(cwd)).not.toContain('runs');
  const smtp = 'smtp://user:a-long-password@127.0.0.1';
  const env = { READERSHIP_SMTP_URL: smtp, AWS_PROFILE: 'docs' };
  const { stderr } = endedWith(0, await callCleanly(['publish', '--parquet', './dataset'], { cwd, env }));
  const printed = ['', 'ONLY_IN_FILE=1', 'READERSHIP_API_KEY=[redacted]', 'also here'];
  expect(stderr.split('\n').sort()).toEqual(printed);
  const variables = await readFile(join(cwd, 'variables'), 'utf8');
  for (const kept of ['AWS_PROFILE=docs', 'PATH=']) expect(variables).toContain(kept);
  for (const secret of ['READERSHIP', KEY, 'a-long-password', 'ONLY_IN_FILE'])
    expect(variables).not.toContain(secret);
});
