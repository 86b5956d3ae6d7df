import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { inWarehouse } from '../open-warehouse.js';
import { callCli, type CliResult } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { type BucketFaults, serveBucket } from '../warehouse/dataset/bucket-server.js';
import { datasetRows } from '../warehouse/dataset/dataset.js';
import { page, store } from '../warehouse/stored-days.js';
import { callCleanly, endedWith, env, liveFile, workspaceOf } from './workspace.js';

const NOWHERE = { baseUrl: 'http://127.0.0.1:1', projectId: 'prj_1' };

/** A workspace with one stored day of views, and nothing published. */
async function setUp(settings = ''): Promise<string> {
  const cwd = await workspaceOf(NOWHERE, settings);
  const days = { '2026-11-01': [page('/a', 3, 1)] };
  await inWarehouse(liveFile(cwd), (warehouse) => store(warehouse, 'prj_1', days));
  return cwd;
}

const publish = (cwd: string, ...args: string[]) => callCleanly(['publish', ...args], { cwd });

test('a command that fails before the first publication publishes no empty history', async () => {
  const cwd = await workspaceOf(NOWHERE);
  const failed = endedWith(2, await callCleanly(['jobs', 'settle', '1', '--merged'], { cwd }));
  expect(failed.stderr).toContain('There is no job 1.');
  const { stderr } = endedWith(1, await callCleanly(['status'], { cwd }));
  expect(stderr).toContain('There is no published history yet');
});

const VIEWS = [
  JSON.stringify({ project: 'prj_1', day: '2026-11-01', path: '/a', page: '/a', human: 3, ai: 1, total: 4 }),
];

/** The history is published, and one sentence says why the dataset is not. */
function expectFailure(result: CliResult, words: RegExp): void {
  const { stdout, stderr } = endedWith(1, result);
  expect(stdout).toMatch(/^data\/history\.duckdb {2}\d\.\d MB\n$/);
  expect(stderr).toMatch(/^publish failed: The Parquet dataset \S+ is not up to date: [^\n]+\.\n$/);
  expect(stderr.trimEnd()).toMatch(words);
}

describe('publish --parquet', () => {
  it('writes a dataset in addition to the history, says what it wrote, and writes all of it on each call', async () => {
    const cwd = await setUp();
    for (const [call, again] of ['first', 'second'].entries()) {
      const { code, stdout, stderr } = await publish(cwd, '--parquet', 'out/dataset');
      expect({ code, stderr }, again).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(
        /^data\/history\.duckdb {2}\d\.\d MB\nout\/dataset {2}2 files, 2 written, 0 removed\n$/,
      );
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

  it('to a place that is a file publishes the history, says so in one sentence, and exits 1', async () => {
    const cwd = await setUp();
    const failed = await publish(cwd, '--parquet', 'readership.yaml');
    expectFailure(failed, /; name a directory, which need not exist yet\.$/);
    const failure = 'publish has failed since';
    expect((await callCli(['status'], { cwd })).stdout).toContain(failure);
    expect((await publish(cwd)).code).toBe(0);
    expect((await callCli(['status'], { cwd })).stdout).not.toContain(failure);
  });

  it('uploads a dataset to a bucket, with the variables of .env, and doctor reads it', async () => {
    const { environment, files } = await serveBucket();
    const cwd = await setUp("publish: { parquet: 's3://bucket/dataset' }\n");
    const lines = Object.entries(environment).map(([name, text]) => `${name}=${text}\n`);
    await writeFile(join(cwd, '.env'), lines.join(''), { mode: 0o600 });
    const { code, stdout, stderr } = await publish(cwd);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^s3:\/\/bucket\/dataset {2}2 files, 2 written, 0 removed$/m);
    expect([...files.keys()].sort()).toEqual([
      'dataset/days/project=prj_1/_workspace.json',
      'dataset/days/project=prj_1/days.parquet',
      'dataset/views/project=prj_1/month=2026-11/views.parquet',
    ]);
    const doctor = async () => (await callCli(['doctor'], { cwd })).stdout;
    expect(await doctor()).toMatch(/pass +dataset +s3:\/\/bucket\/dataset can be read; nothing was written/);
    files.set('dataset/_delta_log/0.json', Buffer.from('{}'));
    expect(await doctor()).toMatch(/fail +dataset +[^\n]* it contains a Delta lake/);
  });

  it.each<[string, BucketFaults, RegExp]>([
    ['answers 403', { status: 403 }, /could not list _delta_log \(403, .*whether the credentials may /],
    ['answers 404', { status: 404 }, /could not list _delta_log \(404, .*; check the address /],
    ['answers 503', { status: 503 }, /could not list _delta_log \(503, .*; the next publication tries again/],
    ['drops the connection', { isDropping: true }, /could not list .*; the next publication tries again/],
  ])('to a store that %s says so in one sentence, and catches up later', async (_, faults, words) => {
    const { environment, files } = await serveBucket(faults);
    const cwd = await setUp("publish: { parquet: 's3://bucket/dataset' }\n");
    const run = () => callCleanly(['publish'], { cwd, env: environment });
    expectFailure(await run(), words);
    expect(files.size).toBe(0);
    delete faults.status;
    delete faults.isDropping;
    endedWith(0, await run());
    expect(files.size).toBe(3);
  });

  it('to a bucket without credentials says which variables to set', async () => {
    const { endpoint } = await serveBucket();
    const cwd = await setUp("publish: { parquet: 's3://bucket/dataset' }\n");
    const env = { AWS_ENDPOINT_URL_S3: endpoint, AWS_EC2_METADATA_DISABLED: 'true', HOME: cwd };
    const words = /there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\.$/;
    expectFailure(await callCleanly(['publish'], { cwd, env }), words);
  });

  it("to the folders of another workspace keeps that one's files, and names them", async () => {
    const [first, second] = [await setUp(), await setUp()];
    const directory = await tempDir();
    endedWith(0, await publish(first, '--parquet', directory));
    const file = join(directory, 'days/project=prj_1/_workspace.json');
    const before = await readFile(file, 'utf8');
    expectFailure(
      await publish(second, '--parquet', directory),
      /days\/project=prj_1 belongs to workspace \S+; .*remove days\/project=prj_1\/_workspace\.json, /,
    );
    expect(await readFile(file, 'utf8')).toBe(before);
    await rm(file);
    endedWith(0, await publish(second, '--parquet', directory));
  });

  it('is what writes a dataset again whose files are gone; run does not, for their disk may be unmounted', async () => {
    const cwd = await setUp('publish: { parquet: dataset }\n');
    const dataset = join(cwd, 'dataset');
    endedWith(0, await publish(cwd));
    await rm(dataset, { recursive: true });
    await inWarehouse(liveFile(cwd), (warehouse) => store(warehouse, 'prj_1', { '2026-11-02': [] }));
    const { stderr } = endedWith(1, await callCleanly(['run'], { cwd, env }));
    expect(stderr).toMatch(/files that were published there are gone; .*: readership publish\.$/m);
    expect(await readdir(cwd)).not.toContain('dataset');
    expect((await callCli(['doctor'], { cwd })).stdout).toMatch(/fail +dataset +[^\n]*there are gone/);
    endedWith(0, await publish(cwd));
    expect((await datasetRows(dataset)).days).toHaveLength(2);
  });

  it.each([
    ['', 'not a directory or s3://bucket/prefix'],
    ['gs://bucket/dataset', 'not a directory or s3://bucket/prefix'],
    ['s3:/bucket/dataset', 'not a directory or s3://bucket/prefix'],
    ['~/dataset', 'not a directory or s3://bucket/prefix'],
    ['--sandbox', "'--parquet <place>' argument missing"],
  ])('rejects %j before anything is done', async (directory, words) => {
    const cwd = await setUp();
    const { code, stderr } = await publish(cwd, '--parquet', directory);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(await readdir(join(cwd, 'data'))).toEqual(['warehouse.duckdb', 'warehouse.duckdb.wal']);
  });

  it('in the configuration: a URL is reported with its line', async () => {
    const cwd = await workspaceOf(NOWHERE, 'publish:\n  parquet: gs://bucket/dataset\n');
    const { stderr } = endedWith(2, await publish(cwd));
    expect(stderr).toMatch(/readership\.yaml:4 {2}publish\.parquet: not a directory or s3:/);
  });
});
