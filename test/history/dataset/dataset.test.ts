import { lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
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

  it('gets back files that were lost, with the next change', async () => {
    const { history, directory, dataset } = await withDataset();
    await rm(join(directory, 'views/project=prj_a'), { recursive: true });
    await rm(join(directory, 'days/project=prj_a/days.parquet'));
    await store(history, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    await publishTo(history, dataset);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
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

  it('keeps the folders of a removed project, and files of others', async () => {
    const { history, directory } = await withDataset();
    const notes = 'views/project=prj_b/month=2026-11/notes.txt';
    await writeFile(join(directory, notes), 'ours');
    const onlyB = datasetIn(directory, ['prj_b']);
    await store(history, 'prj_b', { '2026-11-03': [page('/a', 1)] });
    expect(await changedBy(directory, () => publishTo(history, onlyB))).toEqual([DAYS_OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    expect(await readFile(join(directory, notes), 'utf8')).toBe('ours');
  });

  it('gets what a project loaded while it was removed, once it is added again', async () => {
    const { history, directory, dataset } = await withDataset();
    const onlyB = datasetIn(directory, ['prj_b']);
    await store(history, 'prj_a', { '2026-12-01': [page('/a', 4)], '2026-10-31': [page('/late', 2)] });
    await publishTo(history, onlyB);
    expect(await publishTo(history, dataset)).toMatchObject({ written: 3 });
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
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

  it('gets the month that a killed publication began to write, and loses what that left', async () => {
    const { history, directory, dataset } = await withDataset();
    const left = join(directory, 'views/project=prj_b/month=2026-11/.views.parquet.next');
    await writeFile(left, 'PAR1');
    await reload(history, [page('/z', 2)]);
    await publishTo(history, dataset);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
    await expect(lstat(left)).rejects.toThrow('ENOENT');
  });

  it('goes on from that of 0.4, beside whose files are others', async () => {
    const { history, directory, dataset } = await withDataset();
    await writeFile(join(directory, 'days/project=prj_b/_workspace.json'), '{ "workspace": "w" }');
    await mkdir(join(directory, '_unfinished'));
    await reload(history, [page('/z', 2)]);
    expect(await changedBy(directory, () => publishTo(history, dataset))).toEqual([DAYS_OF_B, LATEST]);
    expect(await datasetRows(directory)).toEqual(await historyRows(history));
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

describe('a dataset of several workspaces', () => {
  it('has the projects of each, and no workspace touches those of another', async () => {
    const one = await withDataset();
    const two = await newStore();
    await store(two, 'prj_c', { '2026-11-01': [page('/c', 3)] });
    const before = await stampsOf(one.directory);
    await publishTo(two, datasetIn(one.directory, ['prj_c']), { isWhole: true });
    await publishTo(one.history, one.dataset);
    const changed = differingPaths(before, await stampsOf(one.directory));
    expect(changed.map((path) => path.split('/')[1])).toEqual(['project=prj_c', 'project=prj_c']);
    const [rows, ofOne, ofTwo] = [
      await datasetRows(one.directory),
      await historyRows(one.history),
      await historyRows(two),
    ];
    expect(rows).toEqual({ views: [...ofOne.views, ...ofTwo.views], days: [...ofOne.days, ...ofTwo.days] });
  });
});

const row = z.object({ project: z.string(), human: z.int() });

const viewsOf = async (directory: string): Promise<Record<string, number>> => {
  const files = join(directory, 'views/*/*/views.parquet');
  const rows = z.array(row).parse(await rowsOfFiles(files, 'project, human::INT AS human'));
  return Object.fromEntries(rows.map(({ project, human }) => [project, human]));
};

describe('project ids that are odd', () => {
  it('have the folder names that Hive gives them', () => {
    expect(
      ['prj_1', 'a/b', 'a=b', '100%', 'a b', 'ünï🦆', '..', 'a\\b', 'NULL', 'nullable', 'x'].map(folderOf),
    ).toEqual([
      ...[
        'project=prj_1',
        'project=a%2Fb',
        'project=a%3Db',
        'project=100%25',
        'project=a%20b',
        'project=ünï🦆',
      ],
      ...['project=..', 'project=a%5Cb', 'project=%4EULL', 'project=nullable', 'project=x'],
    ]);
    expect(folderOf('__HIVE_DEFAULT_PARTITION__')).toBe('project=%5F_HIVE_DEFAULT_PARTITION__');
  });

  it('are read as they are', async () => {
    const ids = [
      ...[
        'acme/docs',
        'a=b',
        '100%',
        'a%2Fb',
        'a b',
        'ünï🦆',
        '007',
        '2026-01-01',
        'true',
        'Null',
        '..',
        '.h',
        '_x',
      ],
      ...[
        "it's",
        'a"b',
        '*x?[y]{z}',
        'a#b',
        'a+b',
        'a&b;c',
        'a\\b',
        '__HIVE_DEFAULT_PARTITION__',
        '$project',
      ],
    ];
    const directory = await tempDir();
    const history = await newStore();
    for (const [index, id] of ids.entries()) await store(history, id, { '2026-11-01': [page('/a', index)] });
    const dataset = datasetIn(directory, ids);
    await publishTo(history, dataset);
    expect(await viewsOf(directory)).toEqual(Object.fromEntries(ids.map((id, index) => [id, index])));
    expect(await publishTo(history, dataset)).toMatchObject({ written: 0, removed: 0 });
  });
});
