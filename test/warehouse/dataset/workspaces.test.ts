import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { publishDataset } from '../../../src/warehouse/dataset/dataset.js';
import { folderOf } from '../../../src/warehouse/dataset/plan.js';
import { DatasetError } from '../../../src/warehouse/dataset/store.js';
import { tempDir } from '../../temp-dir.js';
import { page, store } from '../stored-days.js';
import { type BucketFaults, serveBucket } from './bucket-server.js';
import {
  datasetOptions,
  datasetRows,
  differingPaths,
  historyRows,
  rowsOfFiles,
  stampsOf,
  workspaceDatabase,
} from './dataset.js';

/** A workspace with one stored day of each of its projects, which have the given number of views. */
async function workspaceOf(id: string, views: Readonly<Record<string, number>>) {
  const warehouse = await workspaceDatabase(id);
  for (const [project, human] of Object.entries(views))
    await store(warehouse, project, { '2026-11-01': [page('/a', human)] });
  const projects = Object.keys(views).map((project) => ({ id: project }));
  const publish = (directory: string, isWhole?: boolean) =>
    publishDataset(warehouse, datasetOptions(directory, { projects, isWhole }));
  return { warehouse, publish };
}

const row = z.object({ project: z.string(), human: z.int() });

const viewsOf = async (directory: string): Promise<Record<string, number>> => {
  const files = join(directory, 'views/*/*/views.parquet');
  const rows = z.array(row).parse(await rowsOfFiles(files, 'project, human::INT AS human'));
  return Object.fromEntries(rows.map(({ project, human }) => [project, human]));
};

describe('a dataset of several workspaces', () => {
  it('has the projects of each, and no workspace touches those of another', async () => {
    const directory = await tempDir();
    const one = await workspaceOf('workspace-1', { prj_a: 1, prj_b: 2 });
    const two = await workspaceOf('workspace-2', { prj_c: 3 });
    await Promise.all([one.publish(directory), two.publish(directory)]);
    const before = await stampsOf(directory);
    await two.publish(directory, true);
    expect(
      differingPaths(before, await stampsOf(directory)).every((path) => path.includes('project=prj_c')),
    ).toBe(true);
    const [rows, ofOne, ofTwo] = [
      await datasetRows(directory),
      await historyRows(one.warehouse),
      await historyRows(two.warehouse),
    ];
    expect(rows).toEqual({ views: [...ofOne.views, ...ofTwo.views], days: [...ofOne.days, ...ofTwo.days] });
  });

  it('keeps the folder of another workspace, names it, and gets the other projects', async () => {
    const directory = await tempDir();
    const one = await workspaceOf('workspace-1', { prj_a: 1 });
    const two = await workspaceOf('workspace-2', { prj_a: 5, prj_b: 2 });
    await one.publish(directory);
    for (const isWhole of [false, true]) {
      const error: unknown = await two.publish(directory, isWhole).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DatasetError);
      expect(error).toMatchObject({
        exitCode: 1,
        message:
          `The Parquet dataset ${directory} is not up to date: days/project=prj_a belongs to workspace workspace-1; ` +
          'choose another place, or, if that workspace no longer exists, remove days/project=prj_a/_workspace.json, ' +
          'and the next publication makes the folders those of this workspace.',
      });
      expect(await viewsOf(directory)).toEqual({ prj_a: 1, prj_b: 2 });
    }
  });

  it.each<[string, BucketFaults?]>([['a directory'], ['a bucket', {}]])(
    'in %s gets the folders of a project from one of two workspaces that publish it at once',
    async (_, faults) => {
      const { environment = {} } = faults === undefined ? {} : await serveBucket(faults);
      const location = faults === undefined ? await tempDir() : 's3://bucket/dataset';
      const place = { location, environment };
      const months = ['2026-07-01', '2026-08-01', '2026-09-01', '2026-10-01', '2026-11-01'];
      const publishers = await Promise.all(
        [1, 2].map(async (human) => {
          const { warehouse } = await workspaceOf(`workspace-${human}`, { prj_a: human });
          for (const month of months) await store(warehouse, 'prj_a', { [month]: [page('/a', human)] });
          const options = datasetOptions(location, { place, projects: [{ id: 'prj_a' }] });
          return { publish: () => publishDataset(warehouse, options) };
        }),
      );
      const ended = await Promise.allSettled(publishers.map(({ publish }) => publish()));
      expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      const refused = publishers[ended.findIndex(({ status }) => status === 'rejected')];
      await expect(refused?.publish()).rejects.toThrow(
        /days\/project=prj_a belongs to workspace workspace-[12]/,
      );
      if (faults === undefined) {
        const { views } = await datasetRows(location);
        expect(new Set(views.map((view) => /"human":(\d)/.exec(view)?.[1])).size).toBe(1);
      }
    },
  );

  it('is published to a store without conditional writes, too', async () => {
    const { environment, files } = await serveBucket({ hasNoConditions: true });
    const { warehouse } = await workspaceOf('workspace-1', { prj_a: 1 });
    const place = { location: 's3://bucket/dataset', environment };
    await publishDataset(warehouse, datasetOptions(place.location, { place, projects: [{ id: 'prj_a' }] }));
    expect(files.size).toBe(3);
  });

  it('lets a workspace have the folder of a lost one whose file was removed, as its own history is', async () => {
    const directory = await tempDir();
    const lost = await workspaceOf('workspace-1', { prj_a: 1 });
    await store(lost.warehouse, 'prj_a', { '2025-01-01': [page('/old', 1)] });
    await lost.publish(directory);
    const found = await workspaceOf('workspace-2', { prj_a: 5 });
    await rm(join(directory, 'days/project=prj_a/_workspace.json'));
    expect(await found.publish(directory)).toEqual({ files: 2, written: 2, removed: 1 });
    expect(await datasetRows(directory)).toEqual(await historyRows(found.warehouse));
    await expect(lost.publish(directory)).rejects.toThrow('belongs to workspace workspace-2');
  });

  it('takes an unreadable _workspace.json for that of another workspace', async () => {
    const directory = await tempDir();
    const { publish } = await workspaceOf('workspace-1', { prj_a: 1 });
    await publish(directory);
    await writeFile(join(directory, 'days/project=prj_a/_workspace.json'), '{"workspace":');
    await expect(publish(directory)).rejects.toThrow('days/project=prj_a belongs to workspace unknown;');
  });

  it('keeps two projects apart whose folders are one where case does not matter', async () => {
    const directory = await tempDir();
    const { publish } = await workspaceOf('workspace-1', { prj_a: 1 });
    await publish(directory);
    const file = join(directory, 'days/project=prj_a/_workspace.json');
    await writeFile(file, (await readFile(file, 'utf8')).replace('"project": "prj_a"', '"project": "PRJ_A"'));
    await expect(publish(directory)).rejects.toThrow(DatasetError);
  });

  it.each(['_delta_log', 'views/_delta_log', 'days/_delta_log'])(
    'is not begun in a Delta lake, which has %s',
    async (log) => {
      const directory = await tempDir();
      await mkdir(join(directory, log), { recursive: true });
      await writeFile(join(directory, log, '00000000000000000000.json'), '{}');
      const { publish } = await workspaceOf('workspace-1', { prj_a: 1 });
      const before = await stampsOf(directory);
      await expect(publish(directory)).rejects.toThrow(
        `is not up to date: it contains a Delta lake (${log}); choose another place.`,
      );
      expect(await stampsOf(directory)).toEqual(before);
    },
  );
});

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
    const { publish } = await workspaceOf(
      'workspace-1',
      Object.fromEntries(ids.map((id, index) => [id, index])),
    );
    await publish(directory);
    expect(await viewsOf(directory)).toEqual(Object.fromEntries(ids.map((id, index) => [id, index])));
    expect(await publish(directory)).toMatchObject({ written: 0, removed: 0 });
  });
});
