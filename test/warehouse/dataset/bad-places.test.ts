import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { isUpToDate, publishStep } from '../../../src/steps/publish.js';
import { DatasetError, type DatasetPlace } from '../../../src/warehouse/dataset/store.js';
import { inHistory, valuesOf } from '../../open-warehouse.js';
import { smallDisk } from '../../small-disk.js';
import { partsOf } from '../../steps/parts-of.js';
import { tempDir } from '../../temp-dir.js';
import { page, store } from '../stored-days.js';
import { type BucketFaults, serveBucket } from './bucket-server.js';
import { datasetRows, historyRows, workspaceDatabase } from './dataset.js';

/** A workspace with one stored day, whose history is published to a file and to the place. */
async function publishing(place: DatasetPlace) {
  const warehouse = await workspaceDatabase('workspace-1');
  await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  const historyFile = join(await tempDir(), 'history.duckdb');
  const parts = partsOf(warehouse, { workspace: { historyFile, dataset: place } });
  return { warehouse, historyFile, parts };
}

type Publishing = Awaited<ReturnType<typeof publishing>>;

const HUMAN = 'SELECT human FROM page_views ORDER BY day';

/** Publishes, and checks that the history is published, and that the error says in one sentence what is wrong. */
async function expectProblem(
  { parts, historyFile, warehouse }: Publishing,
  words: string | RegExp,
): Promise<void> {
  const { error, detail } = await publishStep(parts);
  expect(error).toBeInstanceOf(DatasetError);
  expect(error).toMatchObject({ exitCode: 1 });
  const message = String(error);
  expect(message).toMatch(words);
  expect(message).toMatch(/^DatasetError: The Parquet dataset \S+ is not up to date: [^\n]+; [^;\n]+\.$/);
  expect(message).not.toContain('k3y-that-nobody-may-read');
  expect(detail.dataset).toBeUndefined();
  expect(await inHistory(historyFile, (reader) => valuesOf(reader, HUMAN))).toEqual(
    await valuesOf(warehouse, HUMAN),
  );
  expect(await isUpToDate(parts)).toBe(false);
}

/** Publishes, although nothing has changed since, and checks that the dataset is complete. */
async function expectCaughtUp({ parts, warehouse }: Publishing, directory: () => Promise<string> | string) {
  const { error, detail } = await publishStep(parts);
  expect(error).toBeUndefined();
  expect(detail.dataset).toMatchObject({ files: 2 });
  expect(await isUpToDate(parts)).toBe(true);
  expect(await datasetRows(await directory())).toEqual(await historyRows(warehouse));
}

const onDisk = (location: string): DatasetPlace => ({ location, environment: {} });

describe('a dataset whose directory is bad', () => {
  it.each(['dataset', 'dataset/inside'])('because there is a file at %s', async (name) => {
    const directory = await tempDir();
    await writeFile(join(directory, 'dataset'), 'a file');
    await expectProblem(
      await publishing(onDisk(join(directory, name))),
      /(EEXIST|ENOTDIR).*; name a directory, which need not exist yet\.$/,
    );
  });

  it('because it is read-only (skipped if no disk can be mounted)', async (context) => {
    const directory = await tempDir();
    const disk = await smallDisk(context, directory);
    await disk.setReadOnly(true);
    const site = await publishing(onDisk(join(directory, 'dataset')));
    await expectProblem(
      site,
      /(EROFS|ENOENT).*; give this user write access there, or choose another place\.$/,
    );
    await disk.setReadOnly(false);
    await expectCaughtUp(site, () => join(directory, 'dataset'));
  });

  it('because it is full (skipped if no disk can be mounted)', async (context) => {
    const directory = await tempDir();
    const disk = await smallDisk(context, directory);
    const site = await publishing(onDisk(join(directory, 'dataset')));
    for (const bytes of [4_096, 8_192]) {
      await disk.leaveRoom(bytes);
      await expectProblem(site, /(ENOSPC|No space left).*; make room there\.$/);
    }
    await disk.makeRoom();
    await expectCaughtUp(site, () => join(directory, 'dataset'));
    expect(await readdir(join(directory, 'dataset/_unfinished'))).toEqual([]);
  });
});

describe('a dataset that has become empty, as where its disk is not mounted', () => {
  const GONE =
    /: the files that were published there are gone; if it is on a disk that is not mounted, mount it, and otherwise write all of them again with: readership publish\.$/;

  it.each(['', 'team'])(
    'in the folder %j of the disk, is not begun again, and is back with the disk',
    async (folder) => {
      const [disk, away] = [await tempDir(), await tempDir()];
      const directory = join(disk, folder);
      const site = await publishing(onDisk(directory));
      await expectCaughtUp(site, () => directory);
      await store(site.warehouse, 'prj_1', { '2026-11-02': [page('/a', 5)] });
      for (const name of await readdir(disk)) await rename(join(disk, name), join(away, name));
      await expectProblem(site, GONE);
      expect(await readdir(disk)).toEqual([]);
      for (const name of await readdir(away)) await rename(join(away, name), join(disk, name));
      await expectCaughtUp(site, () => directory);
    },
  );

  it('is written whole by the command that says so, and also at a new place', async () => {
    const [directory, other] = [await tempDir(), await tempDir()];
    const site = await publishing(onDisk(directory));
    await expectCaughtUp(site, () => directory);
    await rm(directory, { recursive: true });
    // Nothing changed, so the dataset is not looked at.
    expect((await publishStep(site.parts)).error).toBeUndefined();
    const { error } = await publishStep(site.parts, { isWhole: true });
    expect(error).toBeUndefined();
    const workspace = { historyFile: site.historyFile, dataset: onDisk(other) };
    await expectCaughtUp({ ...site, parts: partsOf(site.warehouse, { workspace }) }, () => other);
    await expectCaughtUp(site, () => directory);
    await rm(directory, { recursive: true });
    await store(site.warehouse, 'prj_1', { '2026-11-02': [page('/a', 5)] });
    await expectProblem(site, GONE);
  });
});

describe('a dataset whose bucket is bad', () => {
  /** A bucket with faults, and the files that it has, as a directory. */
  async function withBucket(faults: BucketFaults, location = 's3://bucket/dataset') {
    const { environment, files } = await serveBucket(faults);
    const site = await publishing({ location, environment });
    const downloaded = async () => {
      const directory = await tempDir();
      for (const [key, body] of files) {
        const file = join(directory, key.slice('dataset/'.length));
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, body);
      }
      return directory;
    };
    return { site, downloaded };
  }

  it.each([
    [403, /could not list _delta_log \(403, Fault\); check the address .* AWS_REGION, .*credentials/],
    [404, /could not list _delta_log \(404, Fault\); check the address/],
    [503, /could not list _delta_log \(503, Fault\); the next publication tries again\.$/],
    [429, /; the next publication tries again\.$/],
  ])('because it answers %i', async (status, words) => {
    const faults: BucketFaults = { status };
    const { site, downloaded } = await withBucket(faults);
    await expectProblem(site, words);
    delete faults.status;
    await expectCaughtUp(site, downloaded);
  });

  it('because it closes the connection', async () => {
    const faults: BucketFaults = { isDropping: true };
    const { site, downloaded } = await withBucket(faults);
    await expectProblem(
      site,
      /could not list _delta_log \(.*(ECONNRESET|socket).*\); the next publication tries again\.$/,
    );
    faults.isDropping = false;
    await expectCaughtUp(site, downloaded);
  });

  it('because nobody listens there', async () => {
    const environment = {
      AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1',
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'key',
    };
    const site = await publishing({ location: 's3://bucket/dataset', environment });
    await expectProblem(site, /ECONNREFUSED.*; the next publication tries again\.$/);
  });

  it('because it does not exist', async () => {
    const { site } = await withBucket({}, 's3://other/dataset');
    await expectProblem(site, /: there is no bucket other; create it, or choose another place\.$/);
  });

  it('because there are no credentials', async () => {
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('HOME', await tempDir());
    const { endpoint } = await serveBucket();
    const environment = { AWS_ENDPOINT_URL_S3: endpoint };
    const site = await publishing({ location: 's3://bucket/dataset', environment });
    await expectProblem(
      site,
      /: there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\.$/,
    );
  });
});
