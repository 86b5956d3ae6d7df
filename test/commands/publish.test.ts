import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { inWarehouse } from '../open-warehouse.js';
import { page, store } from '../warehouse/stored-days.js';
import { callCleanly, endedWith, liveFile, workspaceOf } from './workspace.js';

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
