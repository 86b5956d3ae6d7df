import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { inWarehouse } from '../open-warehouse.js';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { lakeViews, page, store } from '../warehouse/lake/lake.js';
import { serveBucket } from '../warehouse/lake/bucket-server.js';
import { callCleanly, endedWith, liveFile, workspaceOf } from './workspace.js';

const VIEWS = [['prj_1', '2026-11-01', '/a', 3, 1]];

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
  const failed = endedWith(2, await callCleanly(['jobs', 'merged', '1'], { cwd }));
  expect(failed.stderr).toContain('There is no job 1.');
  const { stderr } = endedWith(1, await callCleanly(['status'], { cwd }));
  expect(stderr).toContain('There is no published history yet');
});

describe('publish --parquet', () => {
  it('writes a lake in addition to the history, and says what it wrote', async () => {
    const cwd = await setUp();
    const first = await publish(cwd, '--parquet', 'out/lake');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toMatch(
      /^data\/history\.duckdb {2}\d\.\d MB\nout\/lake {2}2 files, 2 written, 0 replaced\n$/,
    );
    expect(await lakeViews(join(cwd, 'out', 'lake'))).toEqual(VIEWS);
    expect((await publish(cwd, '--parquet', 'out/lake')).stdout).toContain('2 files, 0 written, 0 replaced');
    expect((await publish(cwd, '--rebuild')).stderr).toContain('--rebuild needs a lake');
  });

  it('is not needed if the configuration names a lake, relative to itself', async () => {
    const cwd = await setUp('publish: { parquet: lake }\n');
    const elsewhere = await tempDir();
    endedWith(0, await publish(elsewhere, '--config', join(cwd, 'readership.yaml')));
    expect(await lakeViews(join(cwd, 'lake'))).toEqual(VIEWS);
    expect(await readdir(elsewhere)).toEqual([]);
  });

  it('into a directory with other files publishes the history, touches nothing there, and exits 2', async () => {
    const cwd = await setUp();
    const { stderr } = endedWith(2, await publish(cwd, '--parquet', '.'));
    expect(stderr).toContain(`${cwd} is neither empty nor a Readership lake: it contains `);
    const failure = 'publish has failed since';
    expect((await callCli(['status'], { cwd })).stdout).toContain(failure);
    expect((await publish(cwd)).code).toBe(0);
    expect((await callCli(['status'], { cwd })).stdout).not.toContain(failure);
    expect((await readdir(cwd)).sort()).toEqual(['data', 'readership.yaml']);
    expect((await stat(join(cwd, 'data', 'history.duckdb'))).isFile()).toBe(true);
  });

  it.each([
    ['', 'not a directory or s3://bucket/prefix'],
    ['gs://bucket/lake', 'not a directory or s3://bucket/prefix'],
    ['s3:/bucket/lake', 'not a directory or s3://bucket/prefix'],
    ['~/lake', 'not a directory or s3://bucket/prefix'],
    ['--sandbox', "'--parquet <place>' argument missing"],
  ])('rejects %j before anything is done', async (directory, words) => {
    const cwd = await setUp();
    const { code, stderr } = await publish(cwd, '--parquet', directory);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(await readdir(join(cwd, 'data'))).toEqual(['warehouse.duckdb', 'warehouse.duckdb.wal']);
  });

  it('in the configuration: a URL is reported with its line', async () => {
    const cwd = await workspaceOf(NOWHERE, 'publish:\n  parquet: gs://bucket/lake\n');
    const { stderr } = endedWith(2, await publish(cwd));
    expect(stderr).toMatch(/readership\.yaml:4 {2}publish\.parquet: not a directory or s3:/);
  });

  it('uploads a lake to a bucket, with the key from .env, and reports the size', async () => {
    const { endpoint, files } = await serveBucket();
    const cwd = await setUp(`publish: { parquet: 's3://bucket/lake', endpoint: '${endpoint}' }\n`);
    await writeFile(join(cwd, '.env'), `AWS_ACCESS_KEY_ID=id\nAWS_SECRET_ACCESS_KEY=secret-of-the-store\n`);
    const { code, stdout, stderr } = await publish(cwd);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^s3:\/\/bucket\/lake {2}2 files, 2 written, 0 replaced, 0\.0 MB sent, 0\.0 MB read$/m,
    );
    expect([...files.keys()].filter((key) => /^lake\/(views|days)\/month=2026-11\//.test(key))).toHaveLength(
      2,
    );
  });
});
