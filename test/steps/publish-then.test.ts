import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OtherPlaceError } from '../../src/state/workspace.js';
import { publishStep } from '../../src/steps/publish.js';
import { tempDir } from '../temp-dir.js';
import { newStore } from '../open-history.js';
import { datasetIn, isDatasetFinished } from '../history/dataset/dataset.js';
import { page, store } from '../history/stored-days.js';
import { type GivenParts, partsOf, sendingFrom } from './parts-of.js';

/** A workspace with a stored day, that runs a command after its dataset changed. */
async function siteWith(command: string, given: Pick<GivenParts, 'sender' | 'session'> = {}) {
  const directory = await tempDir();
  const history = await newStore();
  const load = (day: string) => store(history, 'prj_1', { [day]: [page('/a', 3, 1)] });
  await load('2026-11-01');
  const printed: string[] = [];
  const environment = { PATH: process.env['PATH'] };
  const then = { command, directory, environment };
  const dataset = { ...datasetIn(join(directory, 'dataset'), ['prj_1']), then };
  const observer = { onThenOutput: (line: string) => printed.push(line) };
  const parts = partsOf(history, {
    ...given,
    workspace: { historyFile: join(directory, 'history.duckdb'), dataset },
    session: { observer, ...given.session },
  });
  const withCommand = (other: string) => ({
    ...parts,
    workspace: { ...parts.workspace, dataset: { ...dataset, then: { ...then, command: other } } },
  });
  const runs = async () =>
    (await readFile(join(directory, 'runs'), 'utf8').catch(() => '')).split('\n').length - 1;
  return { directory, parts, load, printed, runs, withCommand };
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Resolves once a file exists. */
async function written(file: string): Promise<string> {
  while (!existsSync(file) || !(await readFile(file, 'utf8')).endsWith('\n')) await delay(10);
  return readFile(file, 'utf8');
}

/** A shell and a child of it that both outlast every test, and ignore SIGTERM if `stubborn`. */
const endless = (stubborn = false) =>
  `${stubborn ? "trap '' TERM; " : ''}sleep 600 & echo $$ $! > pids; wait; wait; sleep 600`;

async function expectAllEnded(directory: string): Promise<void> {
  const pids = (await written(join(directory, 'pids'))).trim().split(' ').map(Number);
  expect(pids).toHaveLength(2);
  // A killed process without a parent stays until the system notices.
  for (let attempt = 0; attempt < 100 && pids.some(isAlive); attempt++) await delay(20);
  expect(pids.filter(isAlive)).toEqual([]);
}

/** What the step did, or why it failed. */
const attempt = (...how: Parameters<typeof publishStep>) =>
  publishStep(...how).catch((error: unknown) => ({ error, detail: undefined, summary: '' }));

describe('publish.then', () => {
  it('runs in the directory of the configuration after a publication that changed the dataset, and only then', async () => {
    const site = await siteWith(
      'ls dataset/*/* > listed; echo "to a pipe"; echo "a warning" >&2; echo >> runs',
    );
    expect((await publishStep(site.parts)).error).toBeUndefined();
    expect(await readFile(join(site.directory, 'listed'), 'utf8')).toContain('days.parquet');
    expect(site.printed.sort()).toEqual(['a warning', 'to a pipe']);
    expect(await isDatasetFinished(site.parts)).toBe(true);
    expect((await publishStep(site.parts)).detail).toBeUndefined();
    expect(await site.runs()).toBe(1);
    await site.load('2026-11-02');
    await publishStep(site.parts);
    expect(await site.runs()).toBe(2);
    await publishStep(site.parts, { isWhole: true });
    expect(await site.runs()).toBe(3);
  });

  it('runs again with the next publication if it failed, although nothing changed since', async () => {
    const site = await siteWith('echo >> runs; echo no such bucket >&2; test -e exists || exit 3');
    for (const count of [1, 2]) {
      const { error } = await attempt(site.parts);
      expect(String(error)).toMatch(
        /^DatasetError: The Parquet dataset \S+ is written, but publish\.then ended with exit code 3; it is run again with the next publication\.$/,
      );
      expect(error).toMatchObject({ exitCode: 1 });
      expect(await site.runs()).toBe(count);
      expect(await isDatasetFinished(site.parts)).toBe(false);
    }
    const fixed = site.withCommand('echo >> runs');
    const { error, detail } = await attempt(fixed);
    expect(error).toBeUndefined();
    expect(detail).toEqual({ files: 2, written: 0, removed: 0 });
    expect(await site.runs()).toBe(3);
    expect(await isDatasetFinished(fixed)).toBe(true);
    await publishStep(fixed);
    expect(await site.runs()).toBe(3);
  });

  it.each([
    ['and its children', false],
    ['and its children, also those that ignore SIGTERM', true],
  ])('is stopped after its time %s, and runs again', async (_, stubborn) => {
    const site = await siteWith(endless(stubborn));
    const { error } = await attempt(site.parts, { maxThenMs: 600 });
    expect(String(error)).toContain('but publish.then took longer than 0.01 minutes and was stopped;');
    await expectAllEnded(site.directory);
    expect(await isDatasetFinished(site.parts)).toBe(false);
  });

  it('ends with what runs it, with its children, and runs again', async () => {
    const stop = new AbortController();
    const site = await siteWith(endless(), { session: { signal: stop.signal } });
    const publication = attempt(site.parts);
    await written(join(site.directory, 'pids'));
    stop.abort(new Error('stopped'));
    expect(String((await publication).error)).toBe('Error: stopped');
    await expectAllEnded(site.directory);
    expect(await isDatasetFinished(site.parts)).toBe(false);
  });

  it('does not run in a copy of the workspace, which publishes to no dataset', async () => {
    const place = { machine: 'm', host: 'web-1', path: '/data' };
    const elsewhere = new OtherPlaceError(place, { ...place, path: '/copy' }, null);
    const site = await siteWith('echo >> runs', { sender: sendingFrom(elsewhere) });
    expect(await isDatasetFinished(site.parts)).toBe(false);
    for (const isWhole of [false, true])
      expect((await attempt(site.parts, { isWhole })).error).toBe(elsewhere);
    expect(await site.runs()).toBe(0);
    expect(existsSync(join(site.directory, 'dataset'))).toBe(false);
  });
});
