import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openStore } from '../../src/app/open.js';
import { day } from '../../src/day.js';
import { pageViewsOf } from '../../src/history/days.js';
import type { HistoryStore } from '../../src/history/store.js';
import { answerOf } from '../duckdb.js';
import { execute, newStore, rowsOf, valuesOf } from '../open-history.js';
import { stateBeside } from '../open-state.js';
import { tempDir } from '../temp-dir.js';
import { page, store } from './stored-days.js';

const FIRST = { '2026-11-01': [page('/a', 3, 1), page('/b', 2)] };
const SECOND = { '2026-11-02': [page('/b', 4), page('/c', 5)] };

let history: HistoryStore;
beforeEach(async () => {
  history = await newStore();
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
    expect((await readdir(dirname(history.path))).filter((name) => name.includes('history'))).toEqual([]);
    const { state, worker } = await stateBeside(history);
    const soon = openStore({ historyFile: history.path }, state, worker, { writeAfterMs: 1 });
    await store(soon, 'prj_1', FIRST);
    await vi.waitUntil(() => stat(history.path).catch(() => undefined), { timeout: 60_000, interval: 5 });
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
  });
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
  expect(await valuesOf(history, 'SELECT sum(human)::BIGINT AS human FROM page_views')).toEqual([46]);
});
