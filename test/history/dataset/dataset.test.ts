import { lstat, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { day } from '../../../src/day.js';
import { folderOf } from '../../../src/history/dataset.js';
import type { HistoryStore } from '../../../src/history/store.js';
import { answerOf } from '../../duckdb.js';
import { syncedWhile } from '../../synced.js';
import { tempDir } from '../../temp-dir.js';
import { page, store, storeLoaded } from '../stored-days.js';
import { newStore } from '../../open-history.js';
import {
  datasetIn,
  datasetRows,
  differingPaths,
  historyRows,
  publishTo,
  rowsOfFiles,
  stampsOf,
} from './dataset.js';

/** Three months of two projects, with a day without views and a path that attempts an SQL injection. */
async function threeMonths() {
  const history = await newStore();
  await store(history, 'prj_b', {
    '2026-11-02': [page('/z', 1), page('/a', 2, 7), page("/it's;--", 1)],
    '2026-11-01': [page('/ünïcode/🦆', 3)],
    '2026-09-30': [page('/a', 5, 1)],
  });
  await store(history, 'prj_a', { '2026-11-01': [page('/a', 9)], '2026-10-31': [] });
  const directory = join(await tempDir(), "the-team's dataset");
  return { history, directory, dataset: datasetIn(directory) };
}

/** The same, with its dataset written. */
async function withDataset() {
  const site = await threeMonths();
  await publishTo(site.history, site.dataset);
  return site;
}

/** The paths that a publication changed. */
async function changedBy(directory: string, publish: () => Promise<unknown>): Promise<string[]> {
  const before = await stampsOf(directory);
  await publish();
  return differingPaths(before, await stampsOf(directory));
}

/** Stores the second of November of prj_b again, an hour after it was first stored. */
const reload = (history: HistoryStore, rows: Parameters<typeof storeLoaded>[2]) =>
  storeLoaded(
    history,
    { project: 'prj_b', day: day('2026-11-02'), now: new Date('2026-11-18T06:00:00Z') },
    rows,
    'final',
  );

const LATEST = 'views/project=prj_b/month=2026-11/views.parquet';
const DAYS_OF_B = 'days/project=prj_b/days.parquet';

describe('a Parquet dataset', () => {
  it('has the rows of the history in files with fixed names, sorted by day and path, and compressed', async () => {
    const { history, directory, dataset } = await threeMonths();
    expect(await publishTo(history, dataset)).toEqual({ files: 5, written: 5, removed: 0 });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    expect([...(await stampsOf(directory)).keys()].sort()).toEqual([
      'days/project=prj_a/days.parquet',
      DAYS_OF_B,
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
    const quoted = join(directory, LATEST).replaceAll("'", "''");
    const columns = `SELECT path_in_schema AS name, compression AS codec FROM parquet_metadata('${quoted}') ORDER BY column_id`;
    expect(await answerOf(':memory:', columns)).toEqual(
      ['day', 'path', 'page', 'human', 'ai', 'total'].map((name) => ({ name, codec: 'ZSTD' })),
    );
  });

  it('tells a day without views from one that was never loaded', async () => {
    const { directory } = await withDataset();
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
    const { history, directory, dataset } = await withDataset();
    await reload(history, [page('/a', 1)]);
    const onDisk = await syncedWhile(join(directory, LATEST), () => publishTo(history, dataset));
    expect(onDisk).toEqual(['the new file', 'its directory']);
  });

  it.each([
    ['its total', [page('/z', 1), page('/a', 3, 7), page("/it's;--", 1)]],
    ['its rows, but no total', [page('/z', 2), page('/a', 1, 7), page("/it's;--", 1)]],
  ])('gets the month of a day that changed %s, and no other file of views', async (_, rows) => {
    const { history, directory, dataset } = await withDataset();
    await reload(history, rows);
    const paths = await changedBy(directory, () => publishTo(history, dataset));
    expect(paths).toEqual([DAYS_OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
  });

  it('keeps all files after a day was loaded again with the same numbers', async () => {
    const { history, directory, dataset } = await withDataset();
    await reload(history, [page('/z', 1), page('/a', 2, 7), page("/it's;--", 1)]);
    expect(await changedBy(directory, () => publishTo(history, dataset))).toEqual([]);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
  });

  it('is written in full on request, whatever is there', async () => {
    const { history, directory, dataset } = await withDataset();
    const before = await stampsOf(directory);
    expect(await publishTo(history, dataset, { isWhole: true })).toEqual({
      files: 5,
      written: 5,
      removed: 0,
    });
    expect(differingPaths(before, await stampsOf(directory))).toEqual([...before.keys()].sort());
  });

  it('gets back all files of its projects, next to those of others', async () => {
    const { history, directory, dataset } = await withDataset();
    const other = await newStore();
    await store(other, 'prj_c', { '2026-11-01': [page('/c', 4)] });
    await publishTo(other, datasetIn(directory, ['prj_c']));
    for (const folder of [
      'views/project=prj_a',
      'views/project=prj_b',
      'days/project=prj_a',
      'days/project=prj_b',
    ])
      await rm(join(directory, folder), { recursive: true });
    await store(history, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    expect(await publishTo(history, dataset)).toMatchObject({ written: 5 });
    const { views } = await datasetRows(directory);
    expect(views).toEqual([...(await historyRows(history)).views, ...(await historyRows(other)).views]);
  });

  it('is rewritten whole where a file was damaged by hand, if its month changes or on request', async () => {
    const { history, directory, dataset } = await withDataset();
    await writeFile(join(directory, LATEST), 'PAR1 no more');
    await reload(history, [page('/z', 2)]);
    expect(await publishTo(history, dataset)).toMatchObject({ written: 2 });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    await writeFile(join(directory, DAYS_OF_B), 'PAR1 no more');
    expect(await publishTo(history, dataset)).toMatchObject({ written: 1 });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    await writeFile(join(directory, 'views/project=prj_a/month=2026-11/views.parquet'), '');
    await publishTo(history, dataset, { isWhole: true });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
  });

  it('follows a database that was restored to an earlier state, also to months that it lacks', async () => {
    const { history, directory, dataset } = await threeMonths();
    const restored = await newStore();
    await store(restored, 'prj_a', { '2026-11-01': [page('/a', 8)] });
    await store(restored, 'prj_b', { '2026-09-30': [page('/a', 5, 1)] });
    await publishTo(restored, dataset);
    await publishTo(history, dataset);
    await store(restored, 'prj_b', { '2026-09-29': [page('/a', 1)] });
    expect(await publishTo(restored, dataset)).toMatchObject({ removed: 1 });
    expect(await datasetRows(directory)).toEqual(await historyRows(restored));
  });

  it('keeps what there is of a removed project, and files of others, and catches up once it is added again', async () => {
    const { history, directory, dataset } = await withDataset();
    const notes = 'views/project=prj_b/month=2026-11/notes.txt';
    await writeFile(join(directory, notes), 'ours');
    const before = await historyRows(history);
    await store(history, 'prj_a', { '2026-12-01': [page('/a', 4)], '2026-10-31': [page('/late', 2)] });
    await publishTo(history, datasetIn(directory, ['prj_b']));
    expect(await datasetRows(directory)).toEqual(before);
    expect(await publishTo(history, dataset)).toMatchObject({ written: 3 });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    expect(await readFile(join(directory, notes), 'utf8')).toBe('ours');
  });

  it('gets a day that was loaded again by a clock that was set back', async () => {
    const { history, directory, dataset } = await withDataset();
    const now = new Date('2020-01-01T00:00:00Z');
    await storeLoaded(history, { project: 'prj_b', day: day('2026-11-02'), now }, [page('/z', 10)], 'final');
    expect(await changedBy(directory, () => publishTo(history, dataset))).toEqual([DAYS_OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
  });

  it.each(['', 'views', 'days/project=prj_b'])('stays where a symbolic link at %j leads', async (name) => {
    const { history, directory, dataset } = await withDataset();
    const elsewhere = join(await tempDir(), 'elsewhere');
    const link = join(directory, name);
    await rename(link, elsewhere);
    await symlink(elsewhere, link);
    await reload(history, [page('/z', 2)]);
    expect(await publishTo(history, dataset)).toMatchObject({ written: 2 });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
  });

  it('finishes what an earlier publication began, and leaves nothing unfinished', async () => {
    const { history, directory, dataset } = await withDataset();
    const left = join(directory, 'views/project=prj_b/month=2026-11/.views.parquet.next');
    await writeFile(left, 'of a killed one');
    await reload(history, [page('/z', 2)]);
    await store(history, 'prj_a', { '2026-12-01': [page('/a', 1)] });
    for (let files = 0; files < 6; files++) {
      // As if it was stopped after so many files: the rest are those of the publication before.
      const controller = new AbortController();
      let left = files;
      controller.signal.throwIfAborted = () => {
        if (left-- === 0) controller.abort();
        AbortSignal.prototype.throwIfAborted.call(controller.signal);
      };
      await publishTo(history, dataset, { signal: controller.signal, isWhole: true }).catch(() => undefined);
    }
    await publishTo(history, dataset);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    expect((await readdir(directory, { recursive: true })).filter((name) => name.includes('next'))).toEqual(
      [],
    );
  });
});

describe('the queries of docs/scale.md', () => {
  it('run in DuckDB, and have answers', async () => {
    const { history, directory, dataset } = await threeMonths();
    await store(history, 'prj_b', { '2026-11-10': [page('/a', 4, 2)], '2026-11-03': [page('/a', 2, 1)] });
    await publishTo(history, dataset);
    const text = await readFile(new URL('../../../docs/scale.md', import.meta.url), 'utf8');
    const place = directory.replaceAll("'", "''");
    const blocks = [...text.replaceAll('/srv/dataset', place).matchAll(/^```sql\n-- (.+)\n([^]+?)^```$/gm)];
    const tables =
      blocks
        .find(([, title]) => title === 'DuckDB')?.[2]
        ?.split(';\n')
        .filter(Boolean) ?? [];
    const questions = blocks.filter(([, title = '']) => title.endsWith('.'));
    expect([tables.length, questions.length]).toEqual([2, 3]);
    const answers = await Promise.all(
      questions.map(([, , sql = '']) => answerOf(':memory:', ...tables, sql)),
    );
    expect(answers[0]).toEqual([
      { project: 'prj_b', by_people: '4', by_people_before: '6', by_ai: '2', by_ai_before: '8' },
    ]);
    expect(answers[1]).toEqual([{ project: 'prj_b', page: '/a', by_people: '4', by_ai: '2' }]);
    expect(answers[2]).toEqual([{ project: 'prj_b', days_loaded: '1' }]);
  });
});

const row = z.object({ project: z.string(), human: z.int() });

/** Each with the name of its folder, as Hive escapes it. */
const ODD_IDS: Readonly<Record<string, string>> = {
  ...{ prj_1: 'prj_1', 'a/b': 'a%2Fb', 'a=b': 'a%3Db', '100%': '100%25', 'a%2Fb': 'a%252Fb', 'a b': 'a%20b' },
  ...{ 'ünï🦆': 'ünï🦆', '..': '..', '.h': '.h', _x: '_x', 'a\\b': 'a%5Cb', '007': '007', true: 'true' },
  ...{ NULL: '%4EULL', nullable: 'nullable', __HIVE_DEFAULT_PARTITION__: '%5F_HIVE_DEFAULT_PARTITION__' },
  ...{ "it's": 'it%27s', 'a"b': 'a%22b', '*x?[y]{z}': '%2Ax%3F%5By%5D%7Bz%7D', $project: '%24project' },
};

it('project ids that are odd have the folders that Hive gives them, and are read as they are', async () => {
  const ids = Object.keys(ODD_IDS);
  expect(ids.map(folderOf)).toEqual(Object.values(ODD_IDS).map((name) => `project=${name}`));
  const directory = await tempDir();
  const history = await newStore();
  for (const [index, id] of ids.entries()) await store(history, id, { '2026-11-01': [page('/a', index)] });
  const dataset = datasetIn(directory, ids);
  await publishTo(history, dataset);
  const files = join(directory, 'views/*/*/views.parquet');
  const rows = z.array(row).parse(await rowsOfFiles(files, 'project, human::INT AS human'));
  const viewsOf = Object.fromEntries(rows.map(({ project, human }) => [project, human]));
  expect(viewsOf).toEqual(Object.fromEntries(ids.map((id, index) => [id, index])));
  expect(await publishTo(history, dataset)).toMatchObject({ written: 0, removed: 0 });
});
