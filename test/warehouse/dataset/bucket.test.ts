import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isDatasetCurrent, publishDataset } from '../../../src/warehouse/dataset/dataset.js';
import { tempDir } from '../../temp-dir.js';
import { page, store } from '../stored-days.js';
import { type BucketFaults, serveBucket } from './bucket-server.js';
import { datasetOptions, datasetRows, historyRows, workspaceDatabase } from './dataset.js';

/** Two months of a project, and a bucket for its dataset. */
async function withBucket(faults: BucketFaults = {}) {
  const warehouse = await workspaceDatabase('workspace-1');
  await store(warehouse, 'prj_a', { '2026-10-31': [page('/a', 3)], '2026-11-01': [page('/a', 3, 1)] });
  const { environment, files, requests } = await serveBucket(faults);
  const options = datasetOptions('', { place: { location: 's3://bucket/docs/dataset', environment } });
  return { warehouse, files, requests, options, publish: () => publishDataset(warehouse, options) };
}

/** The files of a bucket, as a directory. */
async function downloaded(files: ReadonlyMap<string, Buffer>): Promise<string> {
  const directory = await tempDir();
  for (const [key, body] of files) {
    const file = join(directory, key.slice('docs/dataset/'.length));
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, body);
  }
  return directory;
}

/** The objects that were written, by the requests. */
const puts = (requests: readonly string[]): string[] =>
  requests.flatMap((request) => /^PUT docs\/dataset\/([^?]+)/.exec(request)?.[1] ?? []);

describe('a dataset in a bucket', () => {
  it('has the rows of the history, each file as one object, written again only if it changed', async () => {
    const { files, requests, publish, warehouse, options } = await withBucket();
    expect(await publish()).toEqual({ files: 3, written: 3, removed: 0 });
    expect(await datasetRows(await downloaded(files))).toEqual(await historyRows(warehouse));
    requests.length = 0;
    expect(await publish()).toEqual({ files: 3, written: 0, removed: 0 });
    expect(puts(requests)).toEqual([]);
    expect(await isDatasetCurrent(warehouse, options)).toBe(true);
    await store(warehouse, 'prj_a', { '2026-11-02': [page('/b', 1)] });
    await publish();
    expect(puts(requests)).toEqual([
      'views/project=prj_a/month=2026-11/views.parquet',
      'days/project=prj_a/days.parquet',
      'days/project=prj_a/_workspace.json',
    ]);
    expect(await datasetRows(await downloaded(files))).toEqual(await historyRows(warehouse));
    expect(await readdir(dirname(warehouse.path))).not.toContain('dataset-upload');
  });

  it('gets back an object that was lost or replaced, and loses a month that the history lost', async () => {
    const { files, publish, warehouse } = await withBucket();
    await store(warehouse, 'prj_a', { '2025-01-01': [page('/old', 1)] });
    await publish();
    const months = [...files.keys()].filter((key) => key.includes('month='));
    expect(months).toHaveLength(3);
    files.delete(months[1] ?? '');
    files.set(months[2] ?? '', files.get(months[0] ?? '') ?? Buffer.of());
    await warehouse.transaction(async ({ connection }) => {
      await connection.run("DELETE FROM page_views WHERE day < '2026-01-01'");
      await connection.run("DELETE FROM day_loads WHERE day < '2026-01-01'");
    });
    expect(await publish()).toMatchObject({ files: 3, removed: 1 });
    expect(await datasetRows(await downloaded(files))).toEqual(await historyRows(warehouse));
  });

  it('has odd project ids as folders', async () => {
    const { warehouse, files, options } = await withBucket();
    const projects = ['a/b &c', '100%', 'ünï🦆', "it's"].map((id) => ({ id }));
    for (const { id } of projects) await store(warehouse, id, { '2026-11-01': [page('/a', 1)] });
    const all = { ...options, projects: [...projects, { id: 'prj_a' }] };
    await publishDataset(warehouse, all);
    expect(await datasetRows(await downloaded(files))).toEqual(await historyRows(warehouse));
    expect(await publishDataset(warehouse, all)).toMatchObject({ written: 0 });
  });

  it('is whole and old, or whole and new, in each file if the store stops in between, and then catches up', async () => {
    const faults: BucketFaults = {};
    const { files, publish, warehouse } = await withBucket(faults);
    await publish();
    const before = new Map(files);
    await store(warehouse, 'prj_a', { '2026-10-30': [page('/c', 1)], '2026-11-03': [page('/c', 1)] });
    faults.writesLeft = 1;
    await expect(publish()).rejects.toThrow('(503, SlowDown); the next publication tries again.');
    const changed = [...files].filter(([key, body]) => before.get(key) !== body).map(([key]) => key);
    expect(changed).toEqual(['docs/dataset/views/project=prj_a/month=2026-10/views.parquet']);
    delete faults.writesLeft;
    await publish();
    expect(await datasetRows(await downloaded(files))).toEqual(await historyRows(warehouse));
  });
});
