import { randomUUID } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { PlatformClock } from '../../../src/api/clock.js';
import { type Shard, shardOf } from '../../../src/config/shard.js';
import { ElsewhereError } from '../../../src/effects/place.js';
import { ConfigurationError } from '../../../src/errors.js';
import { publishStep } from '../../../src/steps/publish.js';
import { adoptLake, readLastClaim } from '../../../src/warehouse/lake/claims.js';
import { type LakeChange, publishLake } from '../../../src/warehouse/lake/lake.js';
import type { LakeOptions } from '../../../src/warehouse/lake/actions.js';
import type { Warehouse } from '../../../src/warehouse/warehouse.js';
import { DiskStorage, type LakePlace } from '../../../src/warehouse/lake/storage.js';
import { permissionOf } from '../../../src/app/permission.js';
import { agreeOnClaim, agreeOnWorkspace } from '../../../src/warehouse/identity.js';
import { NOW } from '../../sandbox/open-sandbox.js';
import { answerOf } from '../../duckdb.js';
import { closeNow, execute, inWarehouse, journalOf, liveWarehouse, valuesOf } from '../../open-warehouse.js';
import { HERE, silentClock, stepContext } from '../../steps/step-context.js';
import { tempDir } from '../../temp-dir.js';
import {
  commitsOf,
  filesIn,
  fill,
  lakeOptions,
  lakeViews,
  metadataOf,
  namedFiles,
  page,
  rowsOfFile,
  sorted,
  store,
  storedViews,
  tableFiles,
} from './lake.js';

const HOUR_MS = 3_600_000;

const publishTo = (
  warehouse: Warehouse,
  directory: string,
  shard?: Shard,
  changes: Partial<LakeOptions> = {},
) => publishLake(warehouse, lakeOptions(directory, { shard, ...changes }));

const change = (files: number, written: number, replaced: number): LakeChange => ({
  ...{ files, written, replaced, rebuilt: [], sentBytes: 0, receivedBytes: 0 },
});

/** Three months of two projects, with a day without views and a path that attempts an SQL injection. */
async function threeMonths(): Promise<{ warehouse: Warehouse; directory: string }> {
  const warehouse = await liveWarehouse();
  await store(warehouse, 'prj_b', {
    '2026-11-02': [page('/z', 1), page('/a', 2, 7), page("/it's;--", 1)],
    '2026-11-01': [page('/ünïcode/🦆', 3)],
    '2026-09-30': [page('/a', 5, 1)],
  });
  await store(warehouse, 'prj_a', { '2026-11-01': [page('/a', 9)], '2026-10-31': [] });
  return { warehouse, directory: join(await tempDir(), "the-team's-lake") };
}

/** The same, with a lake. */
async function published() {
  const site = await threeMonths();
  await publishTo(site.warehouse, site.directory);
  return site;
}

/** What shows whether a file was touched. */
const stampsOf = async (directory: string) => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  const stamps = files.map(async (file) => {
    const { mtimeNs, ino } = await stat(file, { bigint: true });
    return [relative(directory, file), { mtimeNs, ino, bytes: await readFile(file, 'base64') }];
  });
  return new Map((await Promise.all(stamps)) as [string, unknown][]);
};

const rejected = async (
  publishing: Promise<unknown>,
  type: abstract new (...values: never[]) => Error,
  words: RegExp | string,
) => {
  await expect(publishing).rejects.toThrow(type);
  await expect(publishing).rejects.toThrow(words);
};

/** Checks that a lake cannot be published, and that no byte of it changes. */
const expectRefused = async (
  directory: string,
  publish: () => Promise<unknown>,
  words: RegExp | string,
  type: Parameters<typeof rejected>[1] = ConfigurationError,
) => {
  const before = await stampsOf(directory);
  await rejected(publish(), type, words);
  expect(await stampsOf(directory)).toEqual(before);
};

/** The answer to one statement from a separate database. */
const answer = (sql: string) => answerOf(':memory:', sql);
const quoted = (path: string) => `'${path.replaceAll("'", "''")}'`;

/** Replaces a workspace's views of the second of November. */
const restate = (warehouse: Warehouse) => store(warehouse, 'prj_b', { '2026-11-02': [page('/z', 2)] });

describe('the lake', () => {
  it('has the rows of the database for another reader of Parquet, sorted by project, day and path', async () => {
    const { warehouse, directory } = await threeMonths();
    expect(await publishTo(warehouse, directory)).toEqual(change(5, 5, 0));
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
    const files = await filesIn(directory);
    expect(files.map(dirname)).toEqual([
      ...['days/month=2026-09', 'days/month=2026-10', 'days/month=2026-11'],
      ...['views/month=2026-09', 'views/month=2026-11'],
    ]);
    expect(await namedFiles(directory)).toEqual(files);
    for (const table of ['views', 'days'] as const)
      for (const { file, numRecords, size } of await tableFiles(directory, table)) {
        expect(await rowsOfFile(directory, file)).toHaveLength(numRecords);
        expect((await stat(join(directory, file))).size).toBe(size);
        const { row_groups: groups } = await metadataOf(directory, file);
        const columns = groups.flatMap((group) =>
          group.columns.flatMap(({ meta_data: column }) => column ?? []),
        );
        expect(new Set(columns.map(({ codec }) => codec))).toEqual(new Set(['ZSTD']));
        const names = columns.map(({ path_in_schema: [name] }) => name);
        expect(names.slice(0, 2)).toEqual(['project', 'day']);
        expect(names).not.toContain('month');
      }
  });

  it('records the ranges of values in its files, so that engines can skip them', async () => {
    const { directory } = await published();
    expect((await tableFiles(directory, 'views')).at(-1)).toMatchObject({
      numRecords: 5,
      minValues: { project: 'prj_a', day: '2026-11-01', path: '/a', human: 1 },
      maxValues: { project: 'prj_b', day: '2026-11-02', path: '/ünïcode/🦆', total: 9 },
    });
    const [day] = await tableFiles(directory, 'days');
    expect(day?.maxValues).toMatchObject({
      loaded_at: '2026-11-18T05:00:00.000Z',
      pages: 1,
    });
  });

  it('is not created where an engine would read another name', async () => {
    const { warehouse } = await threeMonths();
    const directory = join(await tempDir(), 'a lake');
    await expect(publishTo(warehouse, directory)).rejects.toThrow('whose address contains “ ”');
  });

  it('distinguishes a day without views from one that was never loaded', async () => {
    const { directory } = await published();
    const days = await tableFiles(directory, 'days');
    const rows = (await Promise.all(days.map(({ file }) => rowsOfFile(directory, file)))).flat();
    expect(rows).toHaveLength(5);
    expect(rows).toContainEqual({
      ...{ project: 'prj_a', day: new Date('2026-10-31'), state: 'final' },
      ...{ loaded_at: new Date('2026-11-18T05:00:00Z'), human: 0n, ai: 0n, total: 0n, pages: 0n },
    });
  });

  it('keeps its bytes and times if no row changed, even if days were loaded again', async () => {
    const { warehouse, directory } = await published();
    const before = await stampsOf(directory);
    await execute(warehouse, "UPDATE day_loads SET loaded_at = loaded_at + INTERVAL '1 hour'");
    expect(await publishTo(warehouse, directory)).toEqual(change(5, 0, 0));
    expect(await stampsOf(directory)).toEqual(before);
  });

  it.each([
    ['that changed its total', [page('/z', 1), page('/a', 3, 7), page("/it's;--", 1)], 2],
    ['that kept its totals', [page('/z', 2), page('/a', 1, 7), page("/it's;--", 1)], 1],
  ])('replaces the month of a restated day %s, and no other', async (_, rows, replaced) => {
    const { warehouse, directory } = await published();
    const before = new Set(await namedFiles(directory));
    await store(warehouse, 'prj_b', { '2026-11-02': rows });
    expect(await publishTo(warehouse, directory)).toEqual(change(5, replaced, replaced));
    const added = (await namedFiles(directory)).filter((file) => !before.has(file));
    expect(added).toHaveLength(replaced);
    expect(added.every((file) => file.includes('month=2026-11'))).toBe(true);
    // One entry created the table, one is for each change.
    expect(await commitsOf(directory, 'views')).toBe(3);
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
  });

  it('reads the rows of each month again once a week, for changes that nothing else shows', async () => {
    const { warehouse, directory } = await threeMonths();
    const replacedOn = async (day: number) => {
      const now = new Date(NOW.getTime() + 24 * HOUR_MS * day);
      return (await publishTo(warehouse, directory, undefined, { now })).replaced;
    };
    const damage = (ai: number) =>
      execute(warehouse, 'UPDATE page_views SET ai = $ai WHERE path = $z', { ai, z: '/z' });
    await replacedOn(0);
    await damage(8);
    const replaced: number[] = [];
    for (const day of [1, 2, 3, 4, 5, 6, 7, 8]) replaced.push(await replacedOn(day));
    expect(replaced.toSorted()).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
    expect(replaced[0]).toBe(0);
    await damage(9);
    expect(await replacedOn(31)).toBe(1);
  });

  it('loses a month that the database no longer has, and gets back a file that somebody removed', async () => {
    const { warehouse, directory } = await published();
    for (const table of ['page_views', 'day_loads'])
      await execute(warehouse, `DELETE FROM ${table} WHERE day < '2026-10-01'`);
    const [lost = ''] = (await filesIn(directory)).filter((file) => file.startsWith('views/month=2026-11'));
    await rm(join(directory, lost));
    expect(await publishTo(warehouse, directory)).toEqual(change(3, 1, 3));
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
  });

  it('of an empty history is two tables without files', async () => {
    const directory = await tempDir();
    // As if another copy of the workspace had removed the directory: it is staged again.
    vi.spyOn(DiskStorage.prototype, 'stage').mockResolvedValueOnce(join(directory, 'removed', 'file'));
    expect(await publishTo(await liveWarehouse(), directory)).toEqual(change(0, 0, 0));
    expect(await namedFiles(directory)).toEqual([]);
  });

  it('keeps replaced files for a day, so that running queries can finish', async () => {
    const { warehouse, directory } = await threeMonths();
    const now = new Date();
    const at = (hours: number) => ({ now: new Date(now.getTime() + hours * HOUR_MS) });
    await publishTo(warehouse, directory, undefined, at(0));
    const first = await filesIn(directory);
    await store(warehouse, 'prj_a', { '2026-11-01': [page('/a', 10)] });
    await publishTo(warehouse, directory, undefined, at(1));
    await publishTo(warehouse, directory, undefined, at(24));
    expect(await filesIn(directory)).toEqual(expect.arrayContaining(first));
    await publishTo(warehouse, directory, undefined, at(26));
    expect(await filesIn(directory)).toEqual(await namedFiles(directory));
  });

  it('reads the same from a checkpoint as from its first entry, and continues from there', async () => {
    const { warehouse, directory } = await threeMonths();
    const now = new Date();
    for (let round = 0; round < 24; round++) {
      await store(warehouse, 'prj_a', { '2026-11-01': [page('/a', round)] });
      const at = new Date(now.getTime() + round * HOUR_MS);
      expect(await publishTo(warehouse, directory, undefined, { now: at })).toMatchObject({ files: 5 });
    }
    const log = join(directory, 'views/_delta_log');
    expect(JSON.parse(await readFile(join(log, '_last_checkpoint'), 'utf8'))).toMatchObject({ version: 20 });
    const adds = await answer(
      `SELECT count(add) AS adds, count(txn) AS txns, count(protocol) AS protocols, any_value(add.partitionValues['month']) AS month FROM ${quoted(`${log}/00000000000000000020.checkpoint.parquet`)}`,
    );
    expect(adds).toEqual([
      { adds: '2', txns: '1', protocols: '1', month: expect.stringMatching(/^2026-/) as string },
    ]);
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
    // A month later the entries before the checkpoint are removed; the table is complete without them.
    await publishTo(warehouse, directory, undefined, { now: new Date(now.getTime() + 40 * 24 * HOUR_MS) });
    expect((await readdir(log)).filter((name) => name.endsWith('.json'))).toEqual(
      expect.not.arrayContaining(['00000000000000000019.json']) as string[],
    );
    // A part of a checkpoint whose other part is missing is not read.
    await writeFile(join(log, '00000000000000000022.checkpoint.0000000001.0000000002.parquet'), '');
    expect(await publishTo(warehouse, directory)).toEqual(change(5, 0, 0));
  });

  it('shows one committed state to any reader of its log, however often it is published meanwhile', async () => {
    const { warehouse, directory } = await threeMonths();
    const generation = (views: number) =>
      store(warehouse, 'prj_a', {
        '2026-08-01': [page('/a', views), page('/b', views)],
        '2026-11-01': [page('/a', views)],
      });
    const publishing = { isOver: false };
    await generation(1);
    await publishTo(warehouse, directory);
    const publishAll = async () => {
      for (let views = 2; views <= 7; views++) {
        await generation(views);
        await publishTo(warehouse, directory);
      }
      publishing.isOver = true;
    };
    const seen: number[] = [];
    const read = async () => {
      while (!publishing.isOver) {
        const rows = await lakeViews(directory);
        const generations = rows.flatMap(([project, , , human]) => (project === 'prj_a' ? human : []));
        expect(generations).toHaveLength(3);
        expect(new Set(generations).size).toBe(1);
        seen.push(...generations.slice(0, 1));
      }
    };
    await Promise.all([publishAll(), read(), read()]);
    expect(new Set(seen).size).toBeGreaterThan(1);
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
  });
});

describe('a lake of several shards', () => {
  const PROJECTS = Array.from({ length: 12 }, (_, index) => `prj_${index}`);

  it('has every row once, although the shards do not know of each other', async () => {
    const directory = join(await tempDir(), 'lake');
    const count = 4;
    // Each stores all projects, as if its file was copied from one that was not split: only its own are written.
    const warehouses = await Promise.all(Array.from({ length: count }, () => liveWarehouse()));
    for (const warehouse of warehouses)
      for (const project of PROJECTS)
        await store(warehouse, project, { '2026-11-01': [page('/a', 1), page('/b', 2)], '2026-10-31': [] });
    const publishAll = () =>
      Promise.all(
        warehouses.map((warehouse, index) => publishTo(warehouse, directory, { index: index + 1, count })),
      );
    await publishAll();
    const [first] = warehouses;
    if (first === undefined) throw new Error('no shard');
    expect(sorted(await lakeViews(directory))).toEqual(sorted(await storedViews(first)));
    const days = await tableFiles(directory, 'days');
    expect(days.reduce((sum, { numRecords }) => sum + numRecords, 0)).toBe(2 * PROJECTS.length);

    // One shard restates a day: no file of another shard is touched.
    const restated = PROJECTS.find((project) => shardOf(project, count) === 1) ?? '';
    const before = await namedFiles(directory);
    await store(first, restated, { '2026-11-01': [page('/a', 5), page('/b', 2)] });
    await publishAll();
    const after = new Set(await namedFiles(directory));
    const gone = before.filter((file) => !after.has(file));
    expect(gone).not.toEqual([]);
    expect(gone.every((file) => basename(file).startsWith('shard-1-of-4-'))).toBe(true);
  });

  it.each([
    ['split differently', { index: 1, count: 3 }, { index: 1, count: 4 }, '3 shards'],
    ['not split, although this workspace is', undefined, { index: 1, count: 4 }, 'no shards'],
    ['split, although this workspace is not', { index: 1, count: 3 }, undefined, '3 shards'],
  ])('refuses one that is %s, because projects would be in it twice', async (_, first, second, words) => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory, first);
    await expectRefused(directory, () => publishTo(warehouse, directory, second), words);
  });
});

const first = z.object({ metaData: z.looseObject({ configuration: z.record(z.string(), z.string()) }) });
type MetaData = z.infer<typeof first>['metaData'];
const withFeature = (name: string) => () => ({
  protocol: { minReaderVersion: 3, minWriterVersion: 7, readerFeatures: [name], writerFeatures: [name] },
});
const withProperty = (name: string, value: string) => (metaData: MetaData) => ({
  metaData: { ...metaData, configuration: { ...metaData.configuration, [name]: value } },
});

describe('a lake that another publisher wrote', () => {
  it.each([
    ['with its own days', true],
    ['that is empty', false],
  ])('refuses another workspace %s, and is not changed', async (_, hasDays) => {
    const { directory } = await published();
    const other = await liveWarehouse();
    if (hasDays) await store(other, 'prj_a', { '2026-11-01': [page('/a', 1)] });
    const words = /written by another workspace.*readership restore --from/;
    await expectRefused(directory, () => publishTo(other, directory), words);
  });

  it('refuses a new shard that counts the pages of another platform', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory, { index: 1, count: 2 });
    const other = { source: 'http://127.0.0.1' };
    const publishing = publishTo(warehouse, directory, { index: 2, count: 2 }, other);
    await rejected(publishing, ConfigurationError, 'contains page views of https://platform.example.com');
  });

  it('refuses to lose all its files, and says how to restore the days', async () => {
    const { warehouse, directory } = await published();
    for (const table of ['page_views', 'day_loads']) await execute(warehouse, `DELETE FROM ${table}`);
    const words = /has no days, and the lake .* has 5 files.*readership restore --from/;
    await expectRefused(directory, () => publishTo(warehouse, directory), words);
  });

  it.each([
    ['has deletion vectors', withFeature('deletionVectors'), /feature deletionVectors.*DROP FEATURE/],
    ['is newer', () => ({ protocol: { minReaderVersion: 4, minWriterVersion: 8 } }), 'newer writer'],
    ['only grows', withProperty('delta.appendOnly', 'true'), /delta\.appendOnly.*SET TBLPROPERTIES/],
    ['has a constraint', withProperty('delta.constraints.few', 'human < 9'), /few.*DROP CONSTRAINT few/],
    ['renames columns', withProperty('delta.columnMapping.mode', 'name'), 'delta.columnMapping.mode'],
    [
      'lost a column',
      (metaData: MetaData) => ({ metaData: { ...metaData, schemaString: '{"fields":[]}' } }),
      'no column project of type string',
    ],
    ['was created by another program', () => ({ metaData: { configuration: {} } }), 'did not create'],
    ['is damaged', () => ({ add: 'x' }), 'publish to another location'],
  ])('that %s is not changed', async (_, entryOf, words) => {
    const { warehouse, directory } = await published();
    const log = join(directory, 'views/_delta_log');
    const lines = (await readFile(join(log, '00000000000000000000.json'), 'utf8')).split('\n');
    const { metaData } = first.parse(JSON.parse(lines.find((text) => text.includes('"metaData"')) ?? ''));
    await writeFile(join(log, '00000000000000000002.json'), JSON.stringify(entryOf(metaData)));
    await restate(warehouse);
    await expectRefused(directory, () => publishTo(warehouse, directory), words, Error);
  });

  it('that another program wrote to keeps what has the same rows, and gets back what has not', async () => {
    const directory = join(await tempDir(), 'lake');
    const [one, two] = [await liveWarehouse(), await liveWarehouse()];
    const days = { '2026-10-31': [page('/a', 1)], '2026-11-01': [page('/a', 1), page('/b', 2)] };
    for (const warehouse of [one, two])
      for (let project = 0; project < 6; project++) await store(warehouse, `prj_${project}`, days);
    const publishBoth = async (changes: Partial<LakeOptions> = {}) => [
      await publishTo(one, directory, { index: 1, count: 2 }, changes),
      await publishTo(two, directory, { index: 2, count: 2 }, changes),
    ];
    /** Rewrites the files of November as one, as OPTIMIZE does, with the rows of a query. */
    const rewrite = async (query: string) => {
      const old = (await tableFiles(directory, 'views')).filter(({ file }) => file.includes('month=2026-11'));
      const path = `month=2026-11/part-${randomUUID()}.parquet`;
      const files = old.map(({ file }) => quoted(join(directory, file))).join();
      await answer(`COPY (${query.replace('FILES', `read_parquet([${files}], hive_partitioning = false)`)})
        TO ${quoted(join(directory, 'views', path))}`);
      const removed = old.map(({ file }) => file.slice('views/'.length));
      const stats = '{"numRecords":1,"minValues":{},"maxValues":{}}';
      const times = { size: 1, modificationTime: 1, dataChange: false };
      const actions = [
        ...removed.map((path) => ({ remove: { path, deletionTimestamp: 1, dataChange: false } })),
        { add: { path, partitionValues: { month: '2026-11' }, ...times, stats } },
      ];
      const entry = String(await commitsOf(directory, 'views')).padStart(20, '0');
      await writeFile(
        join(directory, 'views/_delta_log', `${entry}.json`),
        actions.map((action) => JSON.stringify(action)).join('\n'),
      );
    };
    const expectRows = async () => {
      expect(sorted(await lakeViews(directory))).toEqual(sorted(await storedViews(one)));
    };
    await publishBoth();

    await rewrite('FROM FILES');
    expect(await publishBoth()).toEqual([change(4, 0, 0), change(4, 0, 0)]);
    await expectRows();
    // Files in which the rows were found are read again only after a week.
    const found = (await tableFiles(directory, 'views')).find(({ file }) => file.includes('part-'));
    const merged = join(directory, found?.file ?? '');
    const bytes = await readFile(merged);
    await writeFile(merged, 'unreadable');
    expect(await publishBoth()).toEqual([change(4, 0, 0), change(4, 0, 0)]);
    await rejected(publishBoth({ now: new Date(Date.now() + 9 * 24 * HOUR_MS) }), Error, 'part-');
    await writeFile(merged, bytes);
    expect(await publishBoth()).toEqual([change(4, 0, 0), change(4, 0, 0)]);
    // Rows of both shards are gone, and another project has some.
    const junk = "SELECT 'prj_77', DATE '2026-11-02', '/junk', 1, 1, 2";
    await rewrite(`FROM FILES WHERE path <> '/b' UNION ALL ${junk}`);
    const restored = await publishBoth();
    expect(restored.map(({ rebuilt }) => rebuilt)).toEqual([['2026-11'], ['2026-11']]);
    await expectRows();
    expect((await publishBoth()).map(({ written, replaced }) => written + replaced)).toEqual([0, 0]);

    const before = await commitsOf(directory, 'views');
    expect(await publishBoth({ isRebuild: true })).toMatchObject([{ written: 4 }, { written: 4 }]);
    expect(await commitsOf(directory, 'views')).toBe(before + 2);
    await expectRows();
    const empty = await liveWarehouse();
    await fill(empty, lakeOptions(directory).place, { index: 2, count: 2 });
    expect((await storedViews(empty)).length).toBeGreaterThan(0);
  });
});

describe('a directory that is not a lake', () => {
  it.each([
    ['contains other files', 'report.docx'],
    ['contains a directory named views', 'views/index.html'],
    ['contains manifests of another program', '_manifests/deployment.yaml'],
    ['contains Parquet files of another program', 'views/month=2026-11/part-0.parquet'],
  ])('and %s is refused, and not changed', async (_, file) => {
    const { warehouse } = await threeMonths();
    const directory = await tempDir();
    await mkdir(join(directory, dirname(file)), { recursive: true });
    await writeFile(join(directory, file), 'precious');
    await rejected(publishTo(warehouse, directory), ConfigurationError, 'Nothing in it was changed');
    expect((await stampsOf(directory)).size).toBe(1);
  });

  it('but a file, or inside one, is refused', async () => {
    const { warehouse } = await threeMonths();
    const file = join(await tempDir(), 'file');
    await writeFile(file, 'precious');
    for (const directory of [file, join(file, 'lake')])
      await rejected(
        publishTo(warehouse, directory),
        ConfigurationError,
        `Cannot create the directory ${directory}`,
      );
    expect(await readFile(file, 'utf8')).toBe('precious');
  });
});

describe('publishing a lake', () => {
  it('never removes a file that it did not write', async () => {
    const { warehouse, directory } = await published();
    const files = ['views/month=2026-11/mine.parquet', 'notes.md'];
    for (const file of files) await writeFile(join(directory, file), 'precious');
    await restate(warehouse);
    await publishTo(warehouse, directory, undefined, { now: new Date(Date.now() + 90 * 24 * HOUR_MS) });
    for (const file of files) expect(await readFile(join(directory, file), 'utf8')).toBe('precious');
  });

  it('to a directory that cannot be written keeps the previous state, and continues when it can', async () => {
    const { warehouse, directory } = await published();
    const before = await lakeViews(directory);
    await restate(warehouse);
    await rm(join(directory, '_staged'), { recursive: true });
    await writeFile(join(directory, '_staged'), 'in the way');
    await rejected(publishTo(warehouse, directory), Error, '_staged');
    expect(await lakeViews(directory)).toEqual(before);
    await rm(join(directory, '_staged'));
    await publishTo(warehouse, directory);
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
  });

  it('that is stopped keeps the previous state, and leaves nothing half done', async () => {
    const { warehouse, directory } = await published();
    await restate(warehouse);
    const signal = AbortSignal.abort(new Error('told to stop'));
    const publishing = () => publishTo(warehouse, directory, undefined, { signal });
    await expectRefused(directory, publishing, 'told to stop', Error);
  });

  it('leaves the live database free for the next writer', async () => {
    const { warehouse } = await published();
    const tables = "SELECT table_name FROM duckdb_tables() WHERE NOT temporary AND table_name LIKE 'lake%'";
    expect(await valuesOf(warehouse, tables)).toEqual(['lake_months']);
  });
});

/** A live database with its journal, and what it may send, in the place of the tests. */
async function openState(file: string, lake: LakePlace | undefined) {
  const warehouse = await liveWarehouse(file);
  const journal = await journalOf(warehouse);
  const historyFile = join(dirname(file), 'history.duckdb');
  const context = stepContext(warehouse, { lake, journal, historyFile });
  await agreeOnWorkspace(journal, warehouse, { here: HERE, now: NOW });
  await agreeOnClaim(journal, warehouse, NOW);
  const permission = permissionOf({ ...context, clock: silentClock(() => NOW) });
  return { warehouse, context, publishing: async () => (await publishStep(context)).error, ...permission };
}

/** A workspace with a lake that was published once; `copyTo` copies its state. */
async function publishedState() {
  const directory = await tempDir();
  const lake = lakeOptions(join(directory, 'lake')).place;
  const open = async (name: string) => {
    await mkdir(join(directory, name), { recursive: true });
    return openState(join(directory, name, 'warehouse.duckdb'), lake);
  };
  const first = await open('first');
  await store(first.warehouse, 'prj_1', { '2026-11-01': [page('/a', 3)] });
  expect(await first.publishing()).toBeUndefined();
  await closeNow(first.warehouse);
  const copyTo = (name: string, from = 'first') =>
    cp(join(directory, from), join(directory, name), { recursive: true });
  return { directory, lake, open, copyTo };
}

const saying = (words: RegExp): unknown =>
  expect.objectContaining({ message: expect.stringMatching(words) as unknown });
const OLDER = saying(/this is an older state/);
const ELSEWHERE: unknown = expect.any(ElsewhereError);

describe('a state of a workspace', () => {
  it('that is older than the lake does not publish, however often it tries', async () => {
    const { open, copyTo } = await publishedState();
    await copyTo('older');
    for (const [name, day, expected] of [
      ['first', '2026-11-02', undefined],
      ...['2026-11-03', '2026-11-04', '2026-11-05'].map((day) => ['older', day, ELSEWHERE] as const),
      ['first', '2026-11-06', undefined],
    ] as const) {
      const { warehouse, publishing } = await open(name);
      await store(warehouse, 'prj_1', { [day]: [page('/a', 3)] });
      expect(await publishing(), day).toEqual(expected);
      await closeNow(warehouse);
    }
  });

  it('that does not know what was sent sends nothing, and of two that send at once, one does', async () => {
    const { open, copyTo } = await publishedState();
    await copyTo('older');
    const newest = await open('first');
    expect(await newest.refusal()).toBeUndefined();
    const { journal } = newest.context;
    journal.askFirst(newest);
    const numbers = new Set<number>();
    for (const day of ['2026-11-02', '2026-11-03']) {
      await store(newest.warehouse, 'prj_1', { [day]: [page('/a', 3)] });
      expect(await newest.publishing()).toBeUndefined();
      await journal.expectMaySend();
      numbers.add(journal.lastClaim.number);
    }
    expect(numbers.size).toBe(2);
    await closeNow(newest.warehouse);
    const older = await open('older');
    expect(await older.refusal()).toEqual(OLDER);
    expect(await older.claim()).toEqual(OLDER);
    await closeNow(older.warehouse);

    await copyTo('twin');
    const twins = [await open('first'), await open('twin')];
    expect(await Promise.all(twins.map((twin) => twin.refusal()))).toEqual([undefined, undefined]);
    const claims = await Promise.all(twins.map((twin) => twin.claim()));
    expect(claims.filter((refusal) => refusal === undefined)).toHaveLength(1);
    expect(claims).toContainEqual(OLDER);
    for (const { warehouse } of twins) await closeNow(warehouse);
    // The one that lost knows its own claim, and still sends nothing.
    const [lost, won] = claims[0] === undefined ? ['twin', 'first'] : ['first', 'twin'];
    expect(await (await open(lost)).refusal()).toEqual(OLDER);
    expect(await (await open(won)).refusal()).toBeUndefined();
  });

  it('that publishes while its clock is ahead keeps replaced files by the clock of the platform', async () => {
    const { lake, open } = await publishedState();
    const { warehouse, context, publishing } = await open('first');
    const first = await filesIn(lake.location);
    await store(warehouse, 'prj_1', { '2026-11-01': [page('/a', 4)] });
    expect(await publishing()).toBeUndefined();
    const now = () => new Date(NOW.getTime() + 26 * HOUR_MS);
    const ask = () => Promise.resolve({ date: NOW.toUTCString() });
    const clock = new PlatformClock({ baseUrl: 'http://127.0.0.1', now, ask, onSkew: () => undefined });
    await publishStep({ ...context, now, clock }, { isWhole: true });
    expect(await filesIn(lake.location)).toEqual(expect.arrayContaining(first));
    await publishStep({ ...context, now, clock: silentClock(now) }, { isWhole: true });
    expect(await filesIn(lake.location)).not.toEqual(expect.arrayContaining(first));
  });

  it('whose place is adopted is the only one to publish, however often that changes', async () => {
    const { lake, open } = await publishedState();
    const { warehouse } = await open('first');
    const nextOf = () => ({ number: 1, after: 0 });
    for (const path of ['/other', '/third', HERE.path]) {
      const options = lakeOptions(lake.location, { here: { ...HERE, path } });
      await expect(readLastClaim(warehouse, options)).rejects.toThrow(ElsewhereError);
      await adoptLake(warehouse, options, nextOf);
      expect(await readLastClaim(warehouse, options)).toMatchObject({ number: 1 });
    }
  });

  it.each([
    ['which its own place only published, may send', false, HERE, undefined],
    ['which another place published, sends nothing', false, { ...HERE, path: '/other' }, OLDER],
    ['where something was sent, sends nothing', true, HERE, OLDER],
  ])('restored from a lake %s, even without that lake', async (_, hasSent, here, expected) => {
    const { directory, lake, open } = await publishedState();
    const first = await open('first');
    if (hasSent) expect(await first.claim()).toBeUndefined();
    const file = join(directory, 'restored.duckdb');
    await inWarehouse(file, (restored) => fill(restored, lake, undefined, here));
    expect(await (await openState(file, undefined)).refusal()).toEqual(expected);
  });

  it('whose lake is missing or empty neither sends nor publishes, until it is told to create it', async () => {
    const { directory, open } = await publishedState();
    const lake = join(directory, 'lake');
    const { warehouse, context, publishing, refusal } = await open('first');
    await rename(lake, `${lake}.away`);
    await store(warehouse, 'prj_1', { '2026-11-02': [page('/a', 3)] });
    const gone = saying(/missing or empty.*--rebuild/);
    expect(await publishing()).toEqual(gone);
    await mkdir(lake);
    expect(await publishing()).toEqual(gone);
    expect(await refusal()).toEqual(gone);
    expect(await readdir(lake)).toEqual([]);
    expect((await publishStep(context, { isWhole: true, isRebuild: true })).error).toBeUndefined();
    expect(await lakeViews(lake)).toEqual(await storedViews(warehouse));
    // A new location needs no ceremony.
    const other = { ...context, lake: lakeOptions(`${lake}.new`).place };
    expect((await publishStep(other)).error).toBeUndefined();
    await rename(lake, `${lake}.before`);
    expect(await publishing()).toEqual(gone);
  });
});
