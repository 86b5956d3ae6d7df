import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { addDays, day } from '../../src/day.js';
import { StorageError } from '../../src/errors.js';
import type { Reader } from '../../src/history/duckdb.js';
import { openHistory } from '../../src/history/history.js';
import type { HistoryStore } from '../../src/history/store.js';
import { type NextVersion, writeNext } from '../../src/history/write.js';
import { behindLinks } from '../../src/files.js';
import { keepPages, readDayFailures, readUnfinishedDays, recordDayFailure } from '../../src/state/days.js';
import { errorOf } from '../api/open-client.js';
import { inDuckDb } from '../duckdb.js';
import { inHistory, newStore, rowsOf, valuesOf } from '../open-history.js';
import { stateBeside } from '../open-state.js';
import { smallDisk } from '../small-disk.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from './stored-days.js';

const FIRST = { '2026-11-01': [page('/a', 3, 1), page('/b', 2)] };
const SECOND = { '2026-11-02': [page('/b', 4), page('/c', 5)] };
const HUMAN = 'SELECT sum(human)::BIGINT AS human FROM page_views';

let history: HistoryStore;
beforeEach(async () => {
  history = await newStore();
});

const others = async () =>
  (await readdir(dirname(history.path))).filter(
    (name) => !/^(history\.duckdb|state\.db|worker\.lock)$/.test(name),
  );

describe('the next version', () => {
  it('replaces the last one, which readers keep that have it open; it cannot be written to', async () => {
    await store(history, 'prj_1', FIRST);
    await history.write();
    const reader = await openHistory(history.path);
    await store(history, 'prj_1', SECOND);
    await history.write();
    expect(await valuesOf(reader, HUMAN)).toEqual([5]);
    reader.close();
    expect(await inHistory(history.path, (opened) => valuesOf(opened, HUMAN))).toEqual([14]);
    expect((await stat(history.path)).mode & 0o777).toBe(0o444);
    expect(await others()).toEqual([]);
  });

  it('has every day that is read while it is written, or the one after it has', async () => {
    const progress = { isWritten: false };
    await store(history, 'prj_1', FIRST);
    const writing = history.write().finally(() => (progress.isWritten = true));
    const read = [day('2026-11-01')];
    while (!progress.isWritten) {
      const next = addDays(day('2026-11-01'), read.length);
      await store(history, 'prj_1', { [next]: [page('/a', 1)] });
      read.push(next);
      await setTimeout(1);
    }
    await writing;
    await history.write();
    const storedDays = (opened: Reader) =>
      valuesOf(opened, 'SELECT DISTINCT day FROM page_views ORDER BY day');
    expect(await inHistory(history.path, storedDays)).toEqual(read);
  });

  it('is private until it takes the place of the last one', async () => {
    const umask = process.umask(0);
    onTestFinished(() => void process.umask(umask));
    await history.write();
    const modes: number[] = [];
    await writeNext(history.path, {
      change: async () => {
        for (const name of await others())
          modes.push((await stat(join(dirname(history.path), name))).mode & 0o777);
      },
      beforeRename: () => undefined,
    });
    expect(modes).toEqual([0o600]);
  });

  it('is written without what a killed process left, before that could be applied', async () => {
    await store(history, 'prj_1', FIRST);
    await history.write();
    const left = `${history.path}.next-12345`;
    await inDuckDb((connection) => connection.run('CREATE TABLE left_over AS SELECT 1'), left);
    await writeFile(`${left}.wal`, 'half a log');
    await mkdir(`${left}.tmp`);
    await writeFile(join(`${left}.tmp`, 'duckdb_temp_storage'), 'x');
    await writeFile(`${history.path}.next-${process.pid}.wal`, 'of the same process id');
    await store(history, 'prj_1', SECOND);
    await history.write();
    expect(await others()).toEqual([]);
    expect(await valuesOf(history, HUMAN)).toEqual([14]);
  });

  it('removes the log of another program, which readers would apply to every later version, and says so', async () => {
    await store(history, 'prj_1', FIRST);
    await history.write();
    const said: string[] = [];
    await writeFile(`${history.path}.wal`, 'of another program');
    await writeNext(history.path, {
      change: () => Promise.resolve(),
      beforeRename: () => undefined,
      onWarning: (words) => said.push(words),
    });
    expect(said).toEqual([
      expect.stringMatching(/^Another program has written to the history, and left .+\.wal\./),
    ]);
    expect(await others()).toEqual([]);
    expect(await valuesOf(history, HUMAN)).toEqual([5]);
  });

  it('takes the place of the file that a link leads to', async () => {
    const [there, here] = [await tempDir(), await tempDir()];
    await symlink(join(there, 'history.duckdb'), join(here, 'history.duckdb'));
    const linked = await newStore(behindLinks(join(here, 'history.duckdb')));
    await store(linked, 'prj_1', FIRST);
    await linked.write();
    expect(await readdir(there)).toContain('history.duckdb');
    expect(await inHistory(join(here, 'history.duckdb'), (opened) => valuesOf(opened, HUMAN))).toEqual([5]);
  });

  it('is dropped if another worker has taken over, and the days wait', async () => {
    await store(history, 'prj_1', FIRST);
    await history.write();
    const { state } = await stateBeside(history);
    await store(history, 'prj_1', SECOND);
    await state.transaction(() => state.run('UPDATE worker SET token = token + 1'));
    await expect(history.write()).rejects.toThrow('Another process of Readership has taken over');
    expect(await others()).toEqual([]);
    expect(await inHistory(history.path, (opened) => valuesOf(opened, HUMAN))).toEqual([5]);
    await state.transaction(() => state.run('UPDATE worker SET token = token - 1'));
    // The ids of its new paths are in no file yet, and are not given to others.
    await store(history, 'prj_1', { '2026-11-03': [page('/d', 1)] });
    await history.write();
    expect(await rowsOf(history, 'SELECT path, human FROM page_views ORDER BY day, path')).toEqual([
      ...[
        { path: '/a', human: 3 },
        { path: '/b', human: 2 },
      ],
      ...[
        { path: '/b', human: 4 },
        { path: '/c', human: 5 },
        { path: '/d', human: 1 },
      ],
    ]);
  });

  it('is not made from a file that another program put there meanwhile', async () => {
    await store(history, 'prj_1', FIRST);
    await history.write();
    await store(history, 'prj_1', SECOND);
    await writeNext(history.path, { change: () => Promise.resolve(), beforeRename: () => undefined });
    await expect(history.write()).rejects.toThrow('has replaced the history');
  });

  it('on a full disk is dropped in whole, and written once there is room', async (context) => {
    const disk = await smallDisk(context, await tempDir());
    const small = await newStore(join(disk.directory, 'history.duckdb'));
    await store(small, 'prj_1', FIRST);
    await small.write();
    await store(small, 'prj_1', SECOND);
    for (const room of [0, 300_000, 1_000_000]) {
      await disk.leaveRoom(room);
      await expect(small.write()).rejects.toThrow('The disk is full: free some space');
      const left = await readdir(disk.directory);
      expect(left.filter((name) => name.includes('.next-'))).toEqual([]);
      expect(await inHistory(small.path, (opened) => valuesOf(opened, HUMAN))).toEqual([5]);
    }
    await disk.makeRoom();
    await small.write();
    expect(await inHistory(small.path, (opened) => valuesOf(opened, HUMAN))).toEqual([14]);
    await small.close();
  });

  it.each<[step: string, version: (next: string) => Partial<NextVersion>]>([
    ['copied', (next) => ({ source: `${next}.missing` })],
    ['changed', () => ({ change: (connection) => connection.run('FROM nothing').then(() => undefined) })],
    ['made read-only', (next) => ({ change: () => rm(next) })],
    ['renamed', (next) => ({ beforeRename: () => rm(next) })],
  ])('that cannot be %s leaves the last one, and nothing beside it', async (_, versionOf) => {
    await store(history, 'prj_1', FIRST);
    await history.write();
    const before = await readFile(history.path);
    const version = {
      change: () => Promise.resolve(),
      beforeRename: () => undefined,
      ...versionOf(`${history.path}.next-${process.pid}`),
    };
    const failure = await errorOf(writeNext(history.path, version));
    expect(failure).toBeInstanceOf(StorageError);
    expect(failure.message).toMatch(/^Cannot write the next version of .+ \(the last one was kept\): /);
    expect((await readFile(history.path)).equals(before)).toBe(true);
    expect(await others()).toEqual([]);
    await store(history, 'prj_1', SECOND);
    await history.write();
    expect(await valuesOf(history, HUMAN)).toEqual([14]);
  });

  it('lets the state forget failures and kept pages of what it has, and of nothing else', async () => {
    const { state } = await stateBeside(history);
    const days = [day('2026-11-01'), day('2026-11-09')];
    for (const on of days) {
      const at = { project: 'prj_1', day: on };
      await recordDayFailure(state, { ...at, now: new Date('2026-11-17T05:00:00Z') }, 'cut off');
      await keepPages(state, at, new Map([[0, { views: [] }]]));
    }
    await store(history, 'prj_1', FIRST);
    expect(readDayFailures(state, 'prj_1')).toHaveLength(2);
    await history.write();
    expect(readDayFailures(state, 'prj_1').map((one) => one.day)).toEqual(['2026-11-09']);
    expect([...readUnfinishedDays(state, 'prj_1').keys()]).toEqual(['2026-11-09']);
  });
});
