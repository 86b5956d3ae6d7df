import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shardOf } from '../../../src/config/shard.js';
import { ConfigurationError } from '../../../src/errors.js';
import { isUpToDate, publishStep } from '../../../src/steps/publish.js';
import { BucketStorage } from '../../../src/warehouse/lake/bucket.js';
import { copyOfLake } from '../../../src/warehouse/lake/copy.js';
import { adoptLake } from '../../../src/warehouse/lake/claims.js';
import { publishLake } from '../../../src/warehouse/lake/lake.js';
import { LakeAwayError, type LakePlace } from '../../../src/warehouse/lake/storage.js';
import { HERE, stepContext } from '../../steps/step-context.js';
import { inHistory, liveWarehouse } from '../../open-warehouse.js';
import { tempDir } from '../../temp-dir.js';
import { type BucketFaults, serveBucket } from './bucket-server.js';
import { fill, lakeOptions, lakeViews, page, store, storedViews } from './lake.js';

const SECRET = 'k3y-that-nobody-may-read';
const credentials = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: SECRET };

const placeAt = (endpoint: string): LakePlace => ({
  ...{ location: 's3://bucket/docs/lake', endpoint, region: 'eu-central-1' },
  ...{ keepReplacedMs: 86_400_000, credentials },
});

/** Two days of views, and a bucket for their lake. */
async function withBucket(faults: BucketFaults = {}) {
  const warehouse = await liveWarehouse();
  await store(warehouse, 'prj_1', { '2026-10-31': [page('/a', 3)], '2026-11-01': [page('/a', 3, 1)] });
  const bucket = await serveBucket(faults);
  return { ...bucket, warehouse, options: lakeOptions('', { place: placeAt(bucket.endpoint) }) };
}

/** The files of a bucket, as a directory. */
async function downloaded(files: ReadonlyMap<string, { body: Buffer }>): Promise<string> {
  const directory = await tempDir();
  for (const [key, { body }] of files) {
    const file = join(directory, key.slice('docs/lake/'.length));
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, body);
  }
  return directory;
}

describe('a lake in a bucket', () => {
  it('has the rows of the database, changes in one commit, and reports how much was uploaded', async () => {
    const { files, options, warehouse } = await withBucket();
    const first = await publishLake(warehouse, options);
    expect(first).toMatchObject({ files: 4, written: 4, replaced: 0 });
    // The test of the store's conditions is sent too.
    const kept = [...files.values()].reduce((sum, { body }) => sum + body.length, 0);
    expect(first.sentBytes - kept).toBe(2 * 'Tests whether the store honors If-None-Match: *'.length);
    expect([...files.keys()].every((key) => key.startsWith('docs/lake/'))).toBe(true);
    await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', 4, 1)] });
    expect(await publishLake(warehouse, options)).toMatchObject({ files: 4, written: 2, replaced: 2 });
    expect(await publishLake(warehouse, options)).toMatchObject({ files: 4, written: 0, replaced: 0 });
    expect(await lakeViews(await downloaded(files))).toEqual(await storedViews(warehouse));
    expect(await readdir(dirname(warehouse.path))).not.toContain('lake-upload');
  });

  it('continues from a checkpoint, and restores a database', async () => {
    const { options, warehouse } = await withBucket();
    for (let views = 1; views <= 11; views++) {
      await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', views)] });
      await publishLake(warehouse, options);
    }
    const restored = await liveWarehouse();
    await fill(restored, options.place);
    expect(await storedViews(restored)).toEqual(await storedViews(warehouse));
    expect(await publishLake(restored, options)).toMatchObject({ written: 0 });
  });

  it('is copied as the history of a shard, again only when it changed, and the last copy serves while it is away', async () => {
    const faults: BucketFaults = {};
    const { requests, warehouse, ...site } = await withBucket(faults);
    const options = { ...site.options, shard: { index: shardOf('prj_1', 2), count: 2 } };
    await publishLake(warehouse, options);
    const directory = await tempDir();
    const stale: string[] = [];
    const copy = async () => {
      requests.length = 0;
      const file = await copyOfLake(directory, options, true, (words) => stale.push(words));
      const views = requests.filter((request) => request.includes('.parquet')).length;
      return [file, await inHistory(file, storedViews), views] as const;
    };
    const [first, rows, requested] = await copy();
    expect(rows).toEqual(await storedViews(warehouse));
    expect(requested).toBe(4);
    expect(await copy()).toEqual([first, rows, 0]);
    await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', 4, 1)] });
    await publishLake(warehouse, options);
    const [second, changed] = await copy();
    expect(changed).toEqual(await storedViews(warehouse));
    expect(await readdir(directory)).toEqual([basename(second)]);
    expect(stale).toEqual([]);
    faults.status = 403;
    expect(await copy()).toEqual([second, changed, 0]);
    expect(stale).toEqual([expect.stringMatching(/could not be brought up to date: .*Check the bucket/)]);
    expect(stale.join()).not.toContain(SECRET);
  });

  it('gets a large file in parts, complete', async () => {
    const { endpoint, files, requests } = await serveBucket();
    const staging = await tempDir();
    const large = Buffer.alloc(40 * 1024 * 1024, 'readership');
    await writeFile(join(staging, 'large'), large);
    const storage = new BucketStorage(placeAt(endpoint), staging, new AbortController().signal);
    await storage.put(join(staging, 'large'), 'views/large.parquet');
    expect(files.get('docs/lake/views/large.parquet')?.body.equals(large)).toBe(true);
    expect(requests.filter((line) => line.includes('partNumber='))).toHaveLength(3);
    expect(await readdir(staging)).toEqual([]);
  });

  it('commits once when the reply to a commit is lost', async () => {
    const faults = { lostReplies: 4 };
    const { files, options, warehouse } = await withBucket(faults);
    expect(await publishLake(warehouse, options)).toMatchObject({ files: 4 });
    expect(faults.lostReplies).toBe(0);
    expect([...files.keys()].filter((key) => key.includes('views/_delta_log'))).toHaveLength(2);
    expect(await lakeViews(await downloaded(files))).toEqual(await storedViews(warehouse));
  });

  it.each([
    ['refuses', 'refused', 'does not support conditional writes'],
    ['ignores', 'ignored', 'ignores If-None-Match'],
  ] as const)(
    'is neither created nor adopted, at any attempt, if the store %s conditional writes',
    async (_, conditions, words) => {
      const { files, warehouse, options } = await withBucket({ conditions });
      const own = { ...options, here: HERE };
      for (let attempt = 1; attempt <= 4; attempt++) {
        const publishing =
          attempt === 2
            ? adoptLake(warehouse, own, () => ({ number: 1, after: 0 }))
            : publishLake(warehouse, own);
        await expect(publishing).rejects.toThrow(ConfigurationError);
        await expect(publishing).rejects.toThrow(words);
        expect([...files.keys()]).toEqual([]);
      }
    },
  );

  it.each([
    ['a key that is refused', 's3://bucket/docs/lake', 403],
    ['a bucket that is not there', 's3://other/lake', undefined],
  ])('with %s must be fixed by a person, and the message contains no secret', async (_, location, status) => {
    const { options, warehouse } = await withBucket(status === undefined ? {} : { status });
    const publishing = publishLake(warehouse, { ...options, place: { ...options.place, location } });
    const error: unknown = await publishing.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).toMatch(/could not list its files .* Check the bucket, publish.region/);
    expect(String(error)).not.toContain(SECRET);
  });

  it.each([503, 429])('that answers %i is published later, and the history anyway', async (status) => {
    const faults: { status?: number } = { status };
    const { options, warehouse } = await withBucket(faults);
    const historyFile = join(await tempDir(), 'history.duckdb');
    const context = stepContext(warehouse, { historyFile, lake: options.place });
    const away = await publishStep(context);
    expect(away.error).toBeInstanceOf(LakeAwayError);
    expect(away.error).toMatchObject({ exitCode: 75 });
    expect(away.detail.bytes).toBeGreaterThan(0);
    expect(await isUpToDate(context)).toBe(false);
    delete faults.status;
    // Nothing has changed since, but the lake does not exist yet.
    const back = await publishStep(context);
    expect(back.error).toBeUndefined();
    expect(back.summary).toMatch(/the lake: 4 files, 4 written, 0 replaced, \d\.\d MB sent/);
    expect(await isUpToDate(context)).toBe(true);
  });
});
