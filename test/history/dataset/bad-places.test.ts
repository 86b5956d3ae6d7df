import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { publishStep } from '../../../src/steps/publish.js';
import { DatasetError } from '../../../src/history/dataset.js';
import type { HistoryStore } from '../../../src/history/store.js';
import { newStore } from '../../open-history.js';
import { stateBeside } from '../../open-state.js';
import { smallDisk } from '../../small-disk.js';
import { partsOf } from '../../steps/parts-of.js';
import { tempDir } from '../../temp-dir.js';
import { page, store } from '../stored-days.js';
import { datasetIn, datasetRows, historyRows, isDatasetFinished } from './dataset.js';

/** A workspace with one stored day, whose dataset is written to the directory. */
async function publishing(location: string) {
  const history = await newStore();
  await store(history, 'prj_1', { '2026-11-01': [page('/a', 3, 1)] });
  const historyFile = join(await tempDir(), 'history.duckdb');
  const parts = await publishingTo(history, historyFile, location);
  return { history, historyFile, parts };
}

const publishingTo = async (history: HistoryStore, historyFile: string, location: string) => {
  const { state } = await stateBeside(history);
  const dataset = { ...datasetIn(location, ['prj_1']), then: undefined };
  return partsOf(history, { state, workspace: { historyFile, dataset } });
};

type Publishing = Awaited<ReturnType<typeof publishing>>;

/** Publishes, and checks that the error says in one sentence what is wrong. */
async function expectProblem({ parts }: Publishing, words: string | RegExp): Promise<void> {
  const error: unknown = await publishStep(parts).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DatasetError);
  expect(error).toMatchObject({ exitCode: 1 });
  const message = String(error);
  expect(message).toMatch(words);
  expect(message).toMatch(/^DatasetError: The Parquet dataset \S+ is [^\n]+; [^\n]+$/);
  expect(await isDatasetFinished(parts)).toBe(false);
}

/** Publishes, although nothing has changed since, and checks that the dataset is complete. */
async function expectCaughtUp({ parts, history }: Publishing, directory: string) {
  const { detail } = await publishStep(parts);
  expect(detail).toMatchObject({ files: 2 });
  expect(await isDatasetFinished(parts)).toBe(true);
  expect(await datasetRows(directory)).toEqual(await historyRows(history));
}

describe('a dataset whose directory is bad', () => {
  it.each(['dataset', 'dataset/inside'])('because there is a file at %s', async (name) => {
    const directory = await tempDir();
    await writeFile(join(directory, 'dataset'), 'a file');
    await expectProblem(await publishing(join(directory, name)), /(EEXIST|ENOTDIR).*; name a directory\.$/);
  });

  it('because it is read-only (skipped if no disk can be mounted)', async (context) => {
    const directory = await tempDir();
    const disk = await smallDisk(context, directory);
    await disk.setReadOnly(true);
    const site = await publishing(join(directory, 'dataset'));
    await expectProblem(site, /(EROFS|ENOENT).*; give this user write access there\.$/);
    await disk.setReadOnly(false);
    await expectCaughtUp(site, join(directory, 'dataset'));
  });

  it('because it is full (skipped if no disk can be mounted)', async (context) => {
    const directory = await tempDir();
    const disk = await smallDisk(context, directory);
    const site = await publishing(join(directory, 'dataset'));
    for (const bytes of [4_096, 0]) {
      await disk.leaveRoom(bytes);
      await expectProblem(site, /(ENOSPC|No space left).*; make room there\.$/);
    }
    await disk.makeRoom();
    await expectCaughtUp(site, join(directory, 'dataset'));
    const names = await readdir(join(directory, 'dataset'), { recursive: true });
    expect(names.filter((name) => name.includes('next'))).toEqual([]);
  });
});

describe('a dataset whose directory is missing, as where its disk is not mounted', () => {
  const MISSING =
    / is missing; if its disk is not mounted, mount it, and otherwise create it with: readership publish$/;

  it('is not begun again, and is up to date once it is back', async () => {
    const directory = join(await tempDir(), 'dataset');
    const site = await publishing(directory);
    await expectCaughtUp(site, directory);
    await store(site.history, 'prj_1', { '2026-11-02': [page('/a', 5)] });
    await rename(directory, `${directory} away`);
    await expectProblem(site, MISSING);
    await expect(readdir(directory)).rejects.toThrow('ENOENT');
    await rename(`${directory} away`, directory);
    await expectCaughtUp(site, directory);
  });

  it('is created by the command that says so, and is not read while nothing changes', async () => {
    const directory = join(await tempDir(), 'dataset');
    const site = await publishing(directory);
    await expectCaughtUp(site, directory);
    await rm(directory, { recursive: true });
    expect(await publishStep(site.parts)).toMatchObject({ detail: undefined });
    await expectProblem(
      { ...site, parts: await publishingTo(site.history, site.historyFile, `${directory}-2`) },
      MISSING,
    );
    expect((await publishStep(site.parts, { isWhole: true })).error).toBeUndefined();
    expect(await datasetRows(directory)).toEqual(await historyRows(site.history));
  });
});
