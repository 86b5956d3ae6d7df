import { createHash } from 'node:crypto';
import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { pageViewsOf } from '../../src/history/day-counts.js';
import { day } from '../../src/day.js';
import { openHistory } from '../../src/history/history.js';
import type { HistoryStore } from '../../src/history/store.js';
import { writeNext } from '../../src/history/write.js';
import { behindLinks } from '../../src/files.js';
import { keepPages, readDayFailures, readUnfinishedDays, recordDayFailure } from '../../src/state/days.js';
import { answerOf, inDuckDb } from '../duckdb.js';
import { execute, inHistory, newStore, rowsOf, valuesOf } from '../open-history.js';
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
      expectCurrent: () => undefined,
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
      expectCurrent: () => undefined,
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
    await writeNext(history.path, { change: () => Promise.resolve(), expectCurrent: () => undefined });
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

describe('what is stored', () => {
  it('are counts of any size that JavaScript has exactly, and nothing that is no count', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const counts = [0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 40 + 12_345, most];
    await store(history, 'prj_1', {
      '2026-11-01': counts.map((human, index) => ({ path: `/${index}`, human, ai: 0, total: human })),
    });
    await history.write();
    expect(await valuesOf(history, 'SELECT human::VARCHAR FROM page_views ORDER BY path')).toEqual(
      counts.map(String),
    );
    for (const human of [-1, 0.5, Number.NaN, 2 ** 53])
      await expect(
        store(history, 'prj_1', { '2026-11-02': [{ path: '/', human, ai: 0, total: 0 }] }),
      ).rejects.toThrow('is no count of views');
  });

  it('are paths exactly as sent, each once, whatever its project', async () => {
    const paths = ['/', '', '\uFEFF/bom', '/é', '/e\u0301', '/a?b#c', '/\u{1F600}', '/'.repeat(3_000)];
    const rows = paths.map((path) => page(path, 1));
    for (const project of ['prj_1', 'prj_2']) await store(history, project, { '2026-11-01': rows });
    await history.write();
    const again = await newStore(history.path);
    const counts = await again.countsOfDay('prj_2', day('2026-11-01'));
    expect(new Set(pageViewsOf(counts).map(({ path }) => path))).toEqual(new Set(paths));
    await store(history, 'prj_1', { '2026-11-02': rows });
    await history.write();
    expect(await valuesOf(history, 'SELECT count(*)::INT AS n FROM internal.paths')).toEqual([
      2 * paths.length,
    ]);
  });

  it('is a day in whole: its rows are replaced, kept, or gone', async () => {
    await store(history, 'prj_1', { ...FIRST, ...SECOND });
    await history.write();
    await store(history, 'prj_1', { '2026-11-01': [page('/a', 9)] });
    await history.write();
    expect(await rowsOf(history, 'SELECT day, path, human FROM page_views ORDER BY day, path')).toEqual([
      { day: '2026-11-01', path: '/a', human: 9 },
      { day: '2026-11-02', path: '/b', human: 4 },
      { day: '2026-11-02', path: '/c', human: 5 },
    ]);
    expect(await valuesOf(history, 'SELECT count(*)::INT AS n FROM restatements')).toEqual([1]);
  });

  it('is written about once a minute, without anyone asking', async () => {
    await store(history, 'prj_1', FIRST);
    expect(await others()).toEqual([]);
    await expect(stat(history.path)).rejects.toThrow('ENOENT');
    const { state, worker } = await stateBeside(history);
    const { openStore } = await import('../../src/app/open.js');
    const soon = openStore({ historyFile: history.path }, state, worker, { writeAfterMs: 1 });
    await store(soon, 'prj_1', FIRST);
    await expect.poll(() => stat(history.path).catch(() => undefined)).toBeDefined();
    await soon.close();
  });

  it('does not grow in 20 nights, each with a new day and three that are read again', async () => {
    const rows = (salt: number) =>
      Array.from({ length: 2_000 }, (_, n) => page(`/page-${n}`, (n * 7 + salt) % 90));
    const on = (night: number) => new Date(Date.UTC(2026, 8, 1 + night)).toISOString().slice(0, 10);
    const days = Array.from({ length: 30 }, (_, night) => [on(night), rows(night)] as const);
    await store(history, 'prj_1', Object.fromEntries(days));
    await history.write();
    for (let night = 30; night < 50; night++) {
      const read = [night, night - 1, night - 2, night - 3].map((at) => [on(at), rows(at + night)] as const);
      await store(history, 'prj_1', Object.fromEntries(read));
      await history.write();
    }
    const fresh = join(await tempDir(), 'fresh.duckdb');
    await answerOf(fresh, `ATTACH '${history.path}' AS last (READ_ONLY)`, 'COPY FROM DATABASE last TO fresh');
    expect((await stat(history.path)).size).toBeLessThan(1.2 * (await stat(fresh)).size + 1e6);
    expect(await valuesOf(history, 'SELECT count(*)::INT AS n FROM page_views')).toEqual([50 * 2_000]);
  }, 60_000);
});

it('a file more of which is free than used is written again, with the same rows', async () => {
  const many = Array.from({ length: 40_000 }, (_, n) =>
    page(`/page-${n}-${createHash('sha256').update(String(n)).digest('base64')}`, n),
  );
  for (let on = 1; on <= 9; on++) await store(history, 'prj_1', { [`2026-10-0${on}`]: many });
  await history.write();
  const large = (await stat(history.path)).size;
  for (let on = 1; on <= 9; on++) await store(history, 'prj_1', { [`2026-10-0${on}`]: [page('/a', on)] });
  await history.write();
  await execute(history, 'DELETE FROM internal.paths WHERE length(path) > 20');
  for (const ai of [1, 2]) {
    await store(history, 'prj_1', { '2026-10-10': [page('/b', 1, ai)] });
    await history.write();
  }
  expect((await stat(history.path)).size).toBeLessThan(0.7 * large);
  expect(await valuesOf(history, HUMAN)).toEqual([46]);
});
