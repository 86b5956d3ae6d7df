import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet';
import {
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { day } from '../../../src/day.js';
import { isDatasetCurrent, publishDataset } from '../../../src/warehouse/dataset/dataset.js';
import type { Warehouse } from '../../../src/warehouse/warehouse.js';
import { syncedWhile } from '../../synced.js';
import { tempDir } from '../../temp-dir.js';
import { page, store, storeLoaded } from '../stored-days.js';
import {
  datasetOptions,
  datasetRows,
  differingPaths,
  historyRows,
  rowsOfFiles,
  stampsOf,
  workspaceDatabase,
} from './dataset.js';

/** Three months of two projects, with a day without views and a path that attempts an SQL injection. */
async function threeMonths(id = 'workspace-1') {
  const warehouse = await workspaceDatabase(id);
  await store(warehouse, 'prj_b', {
    '2026-11-02': [page('/z', 1), page('/a', 2, 7), page("/it's;--", 1)],
    '2026-11-01': [page('/ünïcode/🦆', 3)],
    '2026-09-30': [page('/a', 5, 1)],
  });
  await store(warehouse, 'prj_a', { '2026-11-01': [page('/a', 9)], '2026-10-31': [] });
  return { warehouse, directory: join(await tempDir(), "the-team's dataset") };
}

const publishTo = (warehouse: Warehouse, directory: string, isWhole = false) =>
  publishDataset(warehouse, datasetOptions(directory, { isWhole }));

/** The same, published. */
async function published(id?: string) {
  const site = await threeMonths(id);
  await publishTo(site.warehouse, site.directory);
  return site;
}

/** The paths that a publication changed. */
async function changedBy(directory: string, publish: () => Promise<unknown>): Promise<string[]> {
  const before = await stampsOf(directory);
  await publish();
  return differingPaths(before, await stampsOf(directory));
}

/** Stores the second of November of prj_b again, an hour after it was first stored. */
const reload = (warehouse: Warehouse, rows: Parameters<typeof storeLoaded>[2]) =>
  storeLoaded(
    warehouse,
    { project: 'prj_b', day: day('2026-11-02'), now: new Date('2026-11-18T06:00:00Z') },
    rows,
    'final',
  );

const LATEST = 'views/project=prj_b/month=2026-11/views.parquet';
const OF_B = ['days/project=prj_b/_workspace.json', 'days/project=prj_b/days.parquet'];

describe('a Parquet dataset', () => {
  it('has the rows of the history in files with fixed names, sorted by day and path, and compressed', async () => {
    const { warehouse, directory } = await threeMonths();
    expect(await publishTo(warehouse, directory)).toEqual({ files: 5, written: 5, removed: 0 });
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
    expect([...(await stampsOf(directory)).keys()].sort()).toEqual([
      ...['days/project=prj_a/_workspace.json', 'days/project=prj_a/days.parquet'],
      ...OF_B,
      'views/project=prj_a/month=2026-11/views.parquet',
      'views/project=prj_b/month=2026-09/views.parquet',
      LATEST,
    ]);
    expect(await rowsOfFiles(join(directory, LATEST), 'day::VARCHAR AS day, path')).toEqual([
      { day: '2026-11-01', path: '/ünïcode/🦆' },
      { day: '2026-11-02', path: '/a' },
      { day: '2026-11-02', path: "/it's;--" },
      { day: '2026-11-02', path: '/z' },
    ]);
    const { row_groups: groups } = await parquetMetadataAsync(
      await asyncBufferFromFile(join(directory, LATEST)),
    );
    const columns = groups.flatMap((group) => group.columns.flatMap(({ meta_data: column }) => column ?? []));
    expect(columns.map(({ path_in_schema: [name], codec }) => [name, codec])).toEqual(
      ['day', 'path', 'page', 'human', 'ai', 'total'].map((name) => [name, 'ZSTD']),
    );
  });

  it('tells a day without views from one that was never loaded', async () => {
    const { directory } = await published();
    const days = await rowsOfFiles(
      join(directory, 'days/project=prj_a/days.parquet'),
      'day::VARCHAR AS day, pages',
    );
    expect(days).toEqual([
      { day: '2026-10-31', pages: '0' },
      { day: '2026-11-01', pages: '1' },
    ]);
  });

  it('has each file on disk before that takes the place of the last one', async () => {
    const { warehouse, directory } = await published();
    await reload(warehouse, [page('/a', 1)]);
    const onDisk = await syncedWhile(join(directory, LATEST), () => publishTo(warehouse, directory));
    expect(onDisk).toEqual(['the new file', 'its directory']);
  });

  it('is not touched if nothing changed, and not even read', async () => {
    const { warehouse, directory } = await published();
    expect(await isDatasetCurrent(warehouse, datasetOptions(directory))).toBe(true);
    expect(await changedBy(directory, () => publishTo(warehouse, directory))).toEqual([]);
    await rename(directory, `${directory} away`);
    expect(await isDatasetCurrent(warehouse, datasetOptions(directory))).toBe(true);
  });

  it.each([
    ['its total', [page('/z', 1), page('/a', 3, 7), page("/it's;--", 1)]],
    ['its rows, but no total', [page('/z', 2), page('/a', 1, 7), page("/it's;--", 1)]],
  ])('gets the month of a day that changed %s, and no other file of views', async (_, rows) => {
    const { warehouse, directory } = await published();
    await reload(warehouse, rows);
    expect(await isDatasetCurrent(warehouse, datasetOptions(directory))).toBe(false);
    const paths = await changedBy(directory, () => publishTo(warehouse, directory));
    expect(paths).toEqual([...OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it('keeps the views of a day that was loaded again with the same numbers', async () => {
    const { warehouse, directory } = await published();
    await reload(warehouse, [page('/z', 1), page('/a', 2, 7), page("/it's;--", 1)]);
    expect(await changedBy(directory, () => publishTo(warehouse, directory))).toEqual(OF_B);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it('is written in full on request, whatever is there', async () => {
    const { warehouse, directory } = await published();
    const before = await stampsOf(directory);
    expect(await publishTo(warehouse, directory, true)).toEqual({ files: 5, written: 5, removed: 0 });
    expect(differingPaths(before, await stampsOf(directory))).toEqual([...before.keys()].sort());
  });

  it('gets back files that were lost or replaced, with the next change', async () => {
    const { warehouse, directory } = await published();
    await rm(join(directory, 'views/project=prj_a'), { recursive: true });
    await rm(join(directory, 'days/project=prj_a/days.parquet'));
    await cp(join(directory, LATEST), join(directory, 'views/project=prj_b/month=2026-09/views.parquet'));
    await store(warehouse, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    await publishTo(warehouse, directory);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it('gets back all files of its projects, next to those of others', async () => {
    const { warehouse, directory } = await published();
    const other = await workspaceDatabase('workspace-2');
    await store(other, 'prj_c', { '2026-11-01': [page('/c', 4)] });
    await publishDataset(other, datasetOptions(directory, { projects: [{ id: 'prj_c' }] }));
    for (const folder of [
      'views/project=prj_a',
      'views/project=prj_b',
      'days/project=prj_a',
      'days/project=prj_b',
    ])
      await rm(join(directory, folder), { recursive: true });
    await store(warehouse, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    expect(await publishTo(warehouse, directory)).toMatchObject({ written: 5 });
    const { views } = await datasetRows(directory);
    expect(views).toEqual([...(await historyRows(warehouse)).views, ...(await historyRows(other)).views]);
  });

  it('is rewritten whole where a file was damaged by hand, and otherwise as it was published', async () => {
    const { warehouse, directory } = await published();
    await writeFile(join(directory, LATEST), 'PAR1 no more');
    await reload(warehouse, [page('/z', 2)]);
    expect(await publishTo(warehouse, directory)).toMatchObject({ written: 2 });
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
    await writeFile(join(directory, 'views/project=prj_a/month=2026-11/views.parquet'), '');
    await publishTo(warehouse, directory);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it('is complete at another place, and again at the first one', async () => {
    const { warehouse, directory } = await published();
    const other = await tempDir();
    expect(await isDatasetCurrent(warehouse, datasetOptions(other))).toBe(false);
    await publishTo(warehouse, other);
    await store(warehouse, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    await publishTo(warehouse, other);
    expect(await datasetRows(other)).toEqual(await historyRows(warehouse));
    expect(await isDatasetCurrent(warehouse, datasetOptions(directory))).toBe(false);
    expect(await publishTo(warehouse, directory)).toMatchObject({ written: 2 });
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it('follows a database that was restored to an earlier state, also to months that it lacks', async () => {
    const { warehouse, directory } = await threeMonths();
    const restored = await workspaceDatabase('workspace-1');
    await store(restored, 'prj_a', { '2026-11-01': [page('/a', 8)] });
    await store(restored, 'prj_b', { '2026-09-30': [page('/a', 5, 1)] });
    await publishTo(restored, directory);
    await publishTo(warehouse, directory);
    // The later state is lost, and the earlier one takes itself for published.
    expect(await isDatasetCurrent(restored, datasetOptions(directory))).toBe(true);
    await store(restored, 'prj_b', { '2026-09-29': [page('/a', 1)] });
    expect(await publishTo(restored, directory)).toMatchObject({ removed: 1 });
    expect(await datasetRows(directory)).toEqual(await historyRows(restored));
  });

  it('keeps the folders of a removed project, and files of others', async () => {
    const { warehouse, directory } = await published();
    const notes = 'views/project=prj_b/month=2026-11/notes.txt';
    await writeFile(join(directory, notes), 'ours');
    const onlyB = datasetOptions(directory, { projects: [{ id: 'prj_b' }] });
    expect(await isDatasetCurrent(warehouse, onlyB)).toBe(false);
    await store(warehouse, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    expect(await changedBy(directory, () => publishDataset(warehouse, onlyB))).toEqual([...OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
    expect(await readFile(join(directory, notes), 'utf8')).toBe('ours');
  });

  it('gets what a project loaded while it was removed, once it is added again', async () => {
    const { warehouse, directory } = await published();
    const onlyB = datasetOptions(directory, { projects: [{ id: 'prj_b' }] });
    await store(warehouse, 'prj_a', { '2026-12-01': [page('/a', 4)], '2026-10-31': [page('/late', 2)] });
    await publishDataset(warehouse, onlyB);
    expect(await isDatasetCurrent(warehouse, onlyB)).toBe(true);
    expect(await isDatasetCurrent(warehouse, datasetOptions(directory))).toBe(false);
    expect(await publishTo(warehouse, directory)).toMatchObject({ written: 3 });
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it('gets a day that was loaded again by a clock that was set back', async () => {
    const { warehouse, directory } = await published();
    const now = new Date('2020-01-01T00:00:00Z');
    await storeLoaded(
      warehouse,
      { project: 'prj_b', day: day('2026-11-02'), now },
      [page('/z', 10)],
      'final',
    );
    expect(await changedBy(directory, () => publishTo(warehouse, directory))).toEqual([...OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
  });

  it.each(['', 'views', 'days/project=prj_b'])('stays where a symbolic link at %j leads', async (name) => {
    const { warehouse, directory } = await published();
    const elsewhere = join(await tempDir(), 'elsewhere');
    const link = join(directory, name);
    await rename(link, elsewhere);
    await symlink(elsewhere, link);
    await reload(warehouse, [page('/z', 2)]);
    expect(await publishTo(warehouse, directory)).toMatchObject({ written: 2 });
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
  });

  it('finishes what an earlier publication began, and leaves nothing unfinished', async () => {
    const { warehouse, directory } = await published();
    await reload(warehouse, [page('/z', 2)]);
    await store(warehouse, 'prj_a', { '2026-12-01': [page('/a', 1)] });
    for (let files = 0; files < 6; files++) {
      // As if it was stopped after so many files: the rest are those of the publication before.
      const controller = new AbortController();
      let left = files;
      controller.signal.throwIfAborted = () => {
        if (left-- === 0) controller.abort();
        AbortSignal.prototype.throwIfAborted.call(controller.signal);
      };
      await publishDataset(
        warehouse,
        datasetOptions(directory, { signal: controller.signal, isWhole: true }),
      ).catch(() => undefined);
    }
    await publishTo(warehouse, directory);
    expect(await datasetRows(directory)).toEqual(await historyRows(warehouse));
    expect(await readdir(join(directory, '_unfinished'))).toEqual([]);
  });

  it('loses what a killed publication left behind, after a day, and not what another one is writing', async () => {
    const { warehouse, directory } = await published();
    for (const [name, at] of [
      ['left-behind', '2026-01-01'],
      ['under-way', '2999-01-01'],
    ] as const) {
      const staging = join(directory, '_unfinished', name);
      await mkdir(staging);
      await writeFile(join(staging, 'half-a-file'), 'PAR1');
      await utimes(staging, new Date(at), new Date(at));
    }
    await reload(warehouse, [page('/z', 2)]);
    await publishTo(warehouse, directory);
    expect(await readdir(join(directory, '_unfinished'))).toEqual(['under-way']);
  });
});
