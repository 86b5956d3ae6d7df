import { DuckDBInstance } from '@duckdb/node-api';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Shard, shardOf } from '../../../src/config/shard.js';
import { ConfigurationError, StorageError } from '../../../src/errors.js';
import { publishLake } from '../../../src/warehouse/lake/publish-lake.js';
import type { Warehouse } from '../../../src/warehouse/warehouse.js';
import { liveWarehouse } from '../../open-warehouse.js';
import { tempDir } from '../../temp-dir.js';
import {
  dataFiles,
  lakeViews,
  metadataOf,
  page,
  readManifests,
  rowsOfFile,
  sorted,
  store,
  storedViews,
} from './lake.js';

const publishTo = (warehouse: Warehouse, directory: string, shard?: Shard) =>
  publishLake(warehouse, { directory, shard, signal: new AbortController().signal });

/** Three months of two projects, a day without views among them, and a path that tries SQL. */
async function threeMonths(): Promise<{ warehouse: Warehouse; directory: string }> {
  const warehouse = await liveWarehouse();
  await store(warehouse, 'prj_b', {
    '2026-11-02': [page('/z', 1), page('/a', 2, 7), page("/it's;--", 1)],
    '2026-11-01': [page('/ünïcode/🦆', 3)],
    '2026-09-30': [page('/a', 5, 1)],
  });
  await store(warehouse, 'prj_a', { '2026-11-01': [page('/a', 9)], '2026-10-31': [] });
  return { warehouse, directory: join(await tempDir(), "the team's lake") };
}

/** What tells whether a file was touched. */
const stampOf = async (directory: string, file: string) => {
  const path = join(directory, file);
  const { mtimeNs, ino } = await stat(path, { bigint: true });
  return { bytes: (await readFile(path)).toString('base64'), mtimeNs, ino };
};

const stampsOf = async (directory: string) =>
  new Map(
    await Promise.all(
      [...(await dataFiles(directory)), '_manifests/all.json'].map(
        async (file) => [file, await stampOf(directory, file)] as const,
      ),
    ),
  );

describe('the lake', () => {
  it('says to another reader of Parquet what the database says, sorted by project, day and path', async () => {
    const { warehouse, directory } = await threeMonths();
    expect(await publishTo(warehouse, directory)).toEqual({ files: 5, written: 5, removed: 0 });
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
    expect((await lakeViews(directory)).slice(1).map(([project, day]) => `${project} ${day}`)).toEqual([
      ...['prj_a 2026-11-01', 'prj_b 2026-11-01', 'prj_b 2026-11-02', 'prj_b 2026-11-02', 'prj_b 2026-11-02'],
    ]);
    const files = await dataFiles(directory);
    expect(files.map(dirname)).toEqual([
      ...['days/month=2026-09', 'days/month=2026-10', 'days/month=2026-11'],
      ...['views/month=2026-09', 'views/month=2026-11'],
    ]);
    const { views, days } = await readManifests(directory);
    expect([...views, ...days].map(({ file }) => file).sort()).toEqual(files);
    for (const { file, rows } of [...views, ...days]) {
      expect(await rowsOfFile(directory, file)).toHaveLength(rows);
      const { row_groups: groups } = await metadataOf(directory, file);
      const columns = groups.flatMap((group) =>
        group.columns.flatMap(({ meta_data: column }) => column ?? []),
      );
      expect(new Set(columns.map(({ codec }) => codec))).toEqual(new Set(['ZSTD']));
      expect(columns.map(({ path_in_schema: [name] }) => name).slice(0, 2)).toEqual(['project', 'day']);
      expect(columns.map(({ path_in_schema: [name] }) => name)).not.toContain('month');
    }
  });

  it('tells a day without views from one that was never loaded', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const { days } = await readManifests(directory);
    const rows = (await Promise.all(days.map(({ file }) => rowsOfFile(directory, file)))).flat();
    expect(rows).toHaveLength(5);
    expect(rows).toContainEqual({
      ...{ project: 'prj_a', day: new Date('2026-10-31'), state: 'final' },
      ...{ loaded_at: new Date('2026-11-18T05:00:00Z'), human: 0n, ai: 0n, total: 0n, pages: 0n },
    });
  });

  it('is left as it is, to the byte and the moment, when nothing changed', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const before = await stampsOf(directory);
    expect(await publishTo(warehouse, directory)).toEqual({ files: 5, written: 0, removed: 0 });
    expect(await stampsOf(directory)).toEqual(before);
  });

  it.each([
    ['that changed its total', [page('/z', 1), page('/a', 3, 7), page("/it's;--", 1)]],
    [
      'that kept its totals, and moved views between pages',
      [page('/z', 2), page('/a', 1, 7), page("/it's;--", 1)],
    ],
  ])('replaces the month of a restated day %s, and no other', async (_, rows) => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const before = await stampsOf(directory);
    // The day was loaded at the same moment, so that its ledger row alone would not always tell.
    await store(warehouse, 'prj_b', { '2026-11-02': rows });
    const change = await publishTo(warehouse, directory);
    const after = await stampsOf(directory);
    const isOfNovember = (file: string) => file.startsWith('views/month=2026-11/');
    const gone = [...before.keys()].filter((file) => !after.has(file));
    expect(gone.filter(isOfNovember)).toHaveLength(1);
    expect(gone.every((file) => file.includes('month=2026-11'))).toBe(true);
    expect(change).toEqual({ files: 5, written: gone.length, removed: gone.length });
    for (const [file, stamp] of before)
      if (!file.includes('month=2026-11') && file !== '_manifests/all.json')
        expect(after.get(file), file).toEqual(stamp);
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
  });

  it('loses a month that the database no longer has, and gets back a file that somebody removed', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    for (const table of ['page_views', 'day_loads'])
      await warehouse.transaction((transaction) =>
        transaction.execute(`DELETE FROM ${table} WHERE day < '2026-10-01'`),
      );
    const [lost = ''] = (await dataFiles(directory)).filter((file) => file.startsWith('views/month=2026-11'));
    await rm(join(directory, lost));
    expect(await publishTo(warehouse, directory)).toEqual({ files: 3, written: 1, removed: 2 });
    expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
    expect(await dataFiles(directory)).toHaveLength(3);
  });

  it('of an empty history is a lake without files', async () => {
    const directory = await tempDir();
    expect(await publishTo(await liveWarehouse(), directory)).toEqual({ files: 0, written: 0, removed: 0 });
    expect(await readManifests(directory)).toEqual({ views: [], days: [] });
  });

  it('lets DuckDB pass over the files of other months', async () => {
    const { warehouse, directory } = await threeMonths();
    await store(warehouse, 'prj_a', { '2026-10-30': [page('/a', 1)] });
    await publishTo(warehouse, directory);
    const instance = await DuckDBInstance.create();
    const connection = await instance.connect();
    const files = join(directory, 'views/**/*.parquet').replaceAll("'", "''");
    const plan = await connection.runAndReadAll(
      `EXPLAIN ANALYZE SELECT sum(total) FROM '${files}' WHERE month = '2026-11' AND day = '2026-11-02'`,
    );
    connection.closeSync();
    instance.closeSync();
    expect(JSON.stringify(plan.getRowsJson())).toMatch(/Scanning Files: 1\/3/);
  });

  it('answers the queries of docs/scale.md, by the manifest and by a glob', async () => {
    const { warehouse } = await threeMonths();
    const directory = join(await tempDir(), 'lake');
    await publishTo(warehouse, directory);
    const docs = await readFile(join(import.meta.dirname, '../../../docs/scale.md'), 'utf8');
    const queries = [...docs.matchAll(/```sql\n([\s\S]+?)```/g)].map(([, sql = '']) => sql);
    const instance = await DuckDBInstance.create();
    const connection = await instance.connect();
    const answers = [];
    for (const sql of queries)
      answers.push(
        (await connection.runAndReadAll(sql.replaceAll('/srv/lake', directory))).getRowObjectsJson(),
      );
    connection.closeSync();
    instance.closeSync();
    expect(answers).toEqual([
      [
        { path: '/a', ai: '7' },
        { path: "/it's;--", ai: '0' },
        { path: '/z', ai: '0' },
        { path: '/ünïcode/🦆', ai: '0' },
      ],
      [
        { month: '2026-09', human: '5', ai: '1' },
        { month: '2026-11', human: '16', ai: '7' },
      ],
    ]);
  });

  it('is one state or another to who reads the manifest, however often it is published meanwhile', async () => {
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
        const rows = await lakeViews(directory).catch((error: unknown) => {
          // A file that the manifest named a moment ago was replaced: the reader fails, and asks the manifest again.
          expect(error).toHaveProperty('code', 'ENOENT');
          return [];
        });
        const generations = rows.flatMap(([project, , , human]) => (project === 'prj_a' ? human : []));
        expect([0, 3]).toContain(generations.length);
        expect(new Set(generations).size).toBeLessThanOrEqual(1);
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

  it('holds every row once, though none of them knows of the others', async () => {
    const directory = join(await tempDir(), 'lake');
    const count = 4;
    // Each stores all projects, as after its file was copied from one that was not split: only its own are written.
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
    const { days } = await readManifests(directory);
    expect(days.reduce((sum, { rows }) => sum + rows, 0)).toBe(2 * PROJECTS.length);

    // One restates a day: no file of another is touched.
    const restated = PROJECTS.find((project) => shardOf(project, count) === 1) ?? '';
    const before = await dataFiles(directory);
    await store(first, restated, { '2026-11-01': [page('/a', 5), page('/b', 2)] });
    await publishAll();
    const after = new Set(await dataFiles(directory));
    const gone = before.filter((file) => !after.has(file));
    expect(gone).not.toEqual([]);
    expect(gone.every((file) => basename(file).startsWith('shard-1-of-4-'))).toBe(true);
  });

  it.each([
    ['split otherwise', { index: 1, count: 3 }, { index: 1, count: 4 }, '3 shards'],
    ['not split', undefined, { index: 1, count: 4 }, 'no shards'],
    ['split, when it is not', { index: 1, count: 3 }, undefined, '3 shards'],
  ])('refuses one that is %s: projects would be in it twice', async (_, first, second, words) => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory, first);
    const before = await dataFiles(directory);
    const publishing = publishTo(warehouse, directory, second);
    await expect(publishing).rejects.toThrow(ConfigurationError);
    await expect(publishing).rejects.toThrow(words);
    expect(await dataFiles(directory)).toEqual(before);
  });
});

describe('a directory that is no lake', () => {
  it.each([
    ['holds files of somebody else', 'report.docx'],
    ['holds a directory called views', 'views/index.html'],
    ['holds manifests of something else', '_manifests/deployment.yaml'],
    ['holds Parquet files of somebody else', 'views/month=2026-11/part-0.parquet'],
  ])('and %s is refused, and not touched', async (_, file) => {
    const { warehouse } = await threeMonths();
    const directory = await tempDir();
    await mkdir(join(directory, dirname(file)), { recursive: true });
    await writeFile(join(directory, file), 'precious');
    const publishing = publishTo(warehouse, directory);
    await expect(publishing).rejects.toThrow(ConfigurationError);
    await expect(publishing).rejects.toThrow('Nothing in it was touched');
    expect(await readFile(join(directory, file), 'utf8')).toBe('precious');
    expect(existsSync(join(directory, '_manifests', 'all.json'))).toBe(false);
  });

  it('but a file, or lies in one, is refused', async () => {
    const { warehouse } = await threeMonths();
    const file = join(await tempDir(), 'file');
    await writeFile(file, 'precious');
    for (const directory of [file, join(file, 'lake')]) {
      const publishing = publishTo(warehouse, directory);
      await expect(publishing).rejects.toThrow(ConfigurationError);
      await expect(publishing).rejects.toThrow('it is a file, or lies in one');
    }
    expect(await readFile(file, 'utf8')).toBe('precious');
  });

  it.runIf(existsSync('/sys'))('and cannot be made says so', async () => {
    const { warehouse } = await threeMonths();
    const publishing = publishTo(warehouse, '/sys/lake');
    await expect(publishing).rejects.toThrow(StorageError);
    await expect(publishing).rejects.toThrow('Cannot make the directory /sys/lake');
  });
});

describe('publishing a lake', () => {
  it('never removes a file that no manifest names', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const files = [
      'views/month=2026-11/mine.parquet',
      'views/month=2026-11/all-0000000000000000.parquet',
      'notes.md',
    ];
    for (const file of files) await writeFile(join(directory, file), 'precious');
    await store(warehouse, 'prj_b', { '2026-11-02': [page('/z', 2)] });
    await publishTo(warehouse, directory);
    for (const file of files) expect(await readFile(join(directory, file), 'utf8')).toBe('precious');
  });

  it.each([
    ['damaged', '{ "version": 1, "vie'],
    ['of a newer version', '{ "version": 2 }'],
    [
      'that names files elsewhere',
      JSON.stringify({ version: 1, views: [], days: [], replaced: ['../precious'] }),
    ],
  ])('with a manifest %s removes nothing, and says what to do', async (_, text) => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const before = await dataFiles(directory);
    await writeFile(join(directory, '_manifests', 'all.json'), text);
    await writeFile(join(dirname(directory), 'precious'), 'precious');
    await store(warehouse, 'prj_b', { '2026-11-02': [page('/z', 2)] });
    const publishing = publishTo(warehouse, directory);
    await expect(publishing).rejects.toThrow(StorageError);
    await expect(publishing).rejects.toThrow(/all\.json is not a manifest.*publish to another directory/s);
    expect(await dataFiles(directory)).toEqual(before);
    expect(existsSync(join(dirname(directory), 'precious'))).toBe(true);
  });

  it.runIf(existsSync('/dev/full'))(
    'to a disk that is full leaves the state before, and goes on when there is room',
    async () => {
      const { warehouse, directory } = await threeMonths();
      await publishTo(warehouse, directory);
      const before = await lakeViews(directory);
      const files = await dataFiles(directory);
      await store(warehouse, 'prj_b', { '2026-11-02': [page('/z', 2)], '2026-08-01': [page('/a', 1)] });
      // The name of a file says what is in it: a second lake tells which one is going to be written.
      const twin = join(await tempDir(), 'lake');
      await publishTo(warehouse, twin);
      const [next = ''] = (await dataFiles(twin)).filter((file) => file.startsWith('views/month=2026-11'));
      const staged = join(directory, '_manifests', `${next.replaceAll('/', '.')}.staged`);
      await symlink('/dev/full', staged);
      const publishing = publishTo(warehouse, directory);
      await expect(publishing).rejects.toThrow(StorageError);
      await expect(publishing).rejects.toThrow(
        /No space left on device.*What was committed before still stands/s,
      );
      expect(await lakeViews(directory)).toEqual(before);
      expect(await dataFiles(directory)).toEqual(files);
      await publishTo(warehouse, directory);
      expect(await lakeViews(directory)).toEqual(await storedViews(warehouse));
      expect(await dataFiles(directory)).toEqual(await dataFiles(twin));
    },
  );

  it('that is told to stop leaves the state before, and nothing half done', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const before = await stampsOf(directory);
    await store(warehouse, 'prj_b', { '2026-11-02': [page('/z', 2)] });
    const signal = AbortSignal.abort(new Error('told to stop'));
    await expect(publishLake(warehouse, { directory, shard: undefined, signal })).rejects.toThrow(
      'told to stop',
    );
    expect(await stampsOf(directory)).toEqual(before);
  });

  it('takes no notice of a state that was announced by half', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    await writeFile(join(directory, '_manifests', 'all.json.next'), '{ "version": 1, "views": [{ "fi');
    expect(await publishTo(warehouse, directory)).toMatchObject({ written: 0 });
    expect(existsSync(join(directory, '_manifests', 'all.json.next'))).toBe(false);
  });

  it('leaves the live database to who writes to it next', async () => {
    const { warehouse, directory } = await threeMonths();
    await publishTo(warehouse, directory);
    const tables = await warehouse.query(
      "SELECT table_name AS name FROM duckdb_tables() WHERE NOT temporary AND table_name LIKE 'lake%'",
      z.object({ name: z.string() }),
    );
    expect(tables).toEqual([]);
  });
});
