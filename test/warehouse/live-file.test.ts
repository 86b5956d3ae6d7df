import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rename, rmdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { changeDatabase, copyAll } from '../../src/warehouse/live-file.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { inDuckDb } from '../duckdb.js';
import { closeNow, execute, inWarehouse, liveWarehouse, valuesOf } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';
import { holdElsewhere } from './other-process.js';

const PAGE = 4096;

/** The database, its log and the files next to it, by the ends of their names. */
interface Files extends Readonly<Record<string, Buffer>> {
  readonly '': Buffer;
}

async function filesOf(path: string): Promise<Files> {
  const files = { '': Buffer.of() };
  for (const name of (await readdir(dirname(path))).sort())
    if (name.startsWith(basename(path)))
      Object.assign(files, {
        [name.slice(basename(path).length)]: await readFile(join(dirname(path), name)),
      });
  return files;
}

async function put(files: Files): Promise<string> {
  const path = join(await tempDir(), 'warehouse.duckdb');
  for (const [suffix, content] of Object.entries(files)) await writeFile(path + suffix, content);
  return path;
}

const dayOf = (day: number, rows: number) =>
  `INSERT INTO page_views SELECT 'prj_1', DATE '2026-01-01' + ${day}, md5((i * 7 + ${day})::VARCHAR), '/', i, 0, i FROM range(${rows}) AS r(i)`;
const addDay = (warehouse: Warehouse, day: number, rows: number) => execute(warehouse, dayOf(day, rows));

const daysIn = async (warehouse: Warehouse): Promise<number> =>
  Number((await valuesOf(warehouse, 'SELECT count(DISTINCT day) FROM page_views'))[0]);

/** The number of days in a database of these files, which must open, accept another day, and keep it. */
async function daysThen(files: Files): Promise<number> {
  const path = await put(files);
  const days = await inWarehouse(path, async (warehouse) => {
    const found = await daysIn(warehouse);
    await addDay(warehouse, 999, 1);
    return found;
  });
  expect(await inWarehouse(path, daysIn)).toBe(days + 1);
  const left = (await readdir(join(path, '..'))).filter((name) => !name.endsWith('.wal'));
  expect(left).toEqual(['warehouse.duckdb']);
  return days;
}

/** The pages at which two states of a file differ. */
function changedPages(before: Buffer, after: Buffer): number[] {
  const pages: number[] = [];
  for (let at = 0; at < Math.max(before.length, after.length); at += PAGE)
    if (!before.subarray(at, at + PAGE).equals(after.subarray(at, at + PAGE))) pages.push(at);
  return pages;
}

const ROWS = 45_000;
/** Ends the name of a database that a killed process was creating. */
const OTHER = '.new-0b6c3f0e-8f5e-4b6a-9d55-3f1f4b0c7a11';

describe('the live file', () => {
  it('is not changed by a byte from opening to closing; only the log is', async () => {
    const warehouse = await liveWarehouse();
    const { path } = warehouse;
    await addDay(warehouse, 0, ROWS);
    await closeNow(warehouse);
    const before = await filesOf(path);
    const { ino } = await stat(path);
    // As if both were restored by copying.
    for (const end of ['', '.wal']) await chmod(path + end, 0o644);
    for (let day = 1; day < 4; day++) await inWarehouse(path, (again) => addDay(again, day, ROWS));
    const after = await filesOf(path);
    expect(changedPages(before[''], after[''])).toEqual([]);
    expect((await stat(path)).ino).toBe(ino);
    for (const end of ['', '.wal']) expect((await stat(path + end)).mode & 0o777).toBe(0o600);
    const log = before['.wal'] ?? Buffer.of();
    expect(log.length).toBeGreaterThan(1_000_000);
    expect(after['.wal']?.subarray(0, log.length).equals(log)).toBe(true);
    expect(Object.keys(after)).toEqual(['', '.wal']);
  });

  it('without anything to commit, changes nothing and leaves no log', async () => {
    const warehouse = await liveWarehouse();
    await closeNow(warehouse);
    const before = await filesOf(warehouse.path);
    await closeNow(await liveWarehouse(warehouse.path));
    expect(await filesOf(warehouse.path)).toEqual(before);
    expect(Object.keys(before)).toEqual(['']);
  });

  it('is opened without touching the user’s own files with similar names', async () => {
    const warehouse = await liveWarehouse();
    await closeNow(warehouse);
    const kept = { '.new-20260101': Buffer.from('a backup'), '.newer': Buffer.from('another') };
    const unfinished = { '.new-1': Buffer.from('unfinished') };
    const path = await put({ ...(await filesOf(warehouse.path)), ...kept, ...unfinished });
    await closeNow(await liveWarehouse(path));
    expect(await filesOf(path)).toMatchObject(kept);
    expect(Object.keys(await filesOf(path)).sort()).toEqual(['', '.new-20260101', '.newer']);
  });

  it('is opened again if another process replaced it before it was locked', async () => {
    const [warehouse, other] = [await liveWarehouse(), await liveWarehouse()];
    for (const one of [warehouse, other]) await closeNow(one);
    await changeDatabase(other.path, (connection) =>
      connection.run("INSERT INTO page_views VALUES ('prj_1', '2026-01-01', '/a', '/a', 1, 0, 1)"),
    );
    const open = DuckDBInstance.fromCache.bind(DuckDBInstance);
    vi.spyOn(DuckDBInstance, 'fromCache').mockImplementationOnce(async (...given) => {
      const instance = await open(...given);
      await rename(other.path, warehouse.path);
      return instance;
    });
    expect(await daysIn(await liveWarehouse(warehouse.path))).toBe(1);
  });

  it('whose replacement fails halfway accepts no commit that the new file would not have', async () => {
    const warehouse = await liveWarehouse();
    const { path } = warehouse;
    await addDay(warehouse, 0, 1);
    await rename(`${path}.wal`, `${path}.log`);
    // It cannot be removed as a file.
    await mkdir(`${path}.wal`);
    await expect(warehouse.rewrite(copyAll, () => Promise.resolve())).rejects.toThrow('continue with');
    await expect(addDay(warehouse, 1, 1)).rejects.toThrow('continue with');
    await expect(closeNow(warehouse)).rejects.toThrow('continue with');
    await rmdir(`${path}.wal`);
    expect(await daysIn(await liveWarehouse(path))).toBe(1);
  });

  it('torn in the pages that a very large transaction writes ahead of its commit, has all that was committed before', async () => {
    const warehouse = await liveWarehouse();
    const { path } = warehouse;
    await addDay(warehouse, 0, 10);
    const before = await filesOf(path);
    // More row groups than DuckDB keeps in memory until a commit.
    await warehouse
      .transaction(async (transaction) => {
        await transaction.execute(
          "INSERT INTO page_views SELECT 'prj_1', DATE '2026-02-01', hash(i)::VARCHAR, '/', i, 0, i FROM range(1500000) AS r(i)",
        );
        throw new Error('killed before the commit');
      })
      .catch(() => undefined);
    await closeNow(warehouse);
    const written = (await filesOf(path))[''];
    const pages = changedPages(before[''], written);
    expect(pages.length).toBeGreaterThan(100);
    expect(pages[0]).toBeGreaterThanOrEqual(before[''].length);
    for (const part of [0.01, 0.5, 0.99, 1]) {
      const end = pages[Math.ceil(part * (pages.length - 1))] ?? 0;
      expect(await daysThen({ ...before, '': written.subarray(0, end) }), `cut at ${end}`).toBe(1);
    }
  });

  it.each(['a small file of somebody else', 'a file that is longer than its header would be'.repeat(300)])(
    'that is a file of another program is refused with advice, and not changed',
    async (content) => {
      const path = await put({ '': Buffer.from(content) });
      await expect(liveWarehouse(path)).rejects.toThrow(/It is damaged.*readership restore/s);
      expect((await readFile(path)).toString()).toBe(content);
    },
  );
});

describe('a log that has grown large', () => {
  let old: Files;
  let folded: Files;
  const DAYS = 6;

  beforeAll(async () => {
    const empty = await liveWarehouse();
    await closeNow(empty);
    const { path } = empty;
    // By DuckDB itself, since the log would be folded at the next transaction.
    const addAll = async (connection: DuckDBConnection) => {
      await connection.run('PRAGMA disable_checkpoint_on_shutdown');
      for (let day = 0; day < DAYS; day++) await connection.run(dayOf(day, ROWS));
    };
    await inDuckDb(addAll, path, { checkpoint_threshold: '1TB' });
    old = await filesOf(path);
    const after = await put(old);
    await closeNow(await liveWarehouse(after));
    folded = await filesOf(after);
  });

  it('is merged into a new file on close, which is smaller; whenever that is killed, all its rows are there', async () => {
    const { '': next, ...others } = folded;
    expect(others).toEqual({});
    const log = old['.wal'] ?? Buffer.of();
    expect(log.length).toBeGreaterThan(16 * 1024 ** 2);
    expect(next.length).toBeLessThan(log.length);
    const withoutHeader = Buffer.concat([Buffer.alloc(3 * PAGE), next.subarray(3 * PAGE)]);
    for (const [name, files] of Object.entries<Files>({
      'before the fold': old,
      'the copy has its name': { ...old, '.new': Buffer.of() },
      'the copy has a torn header': { ...old, '.new': next.subarray(0, 5_000) },
      'the copy has its data and no header': { ...old, '.new': withoutHeader },
      'the copy has its header and no data': { ...old, '.new': next.subarray(0, 3 * PAGE) },
      'the copy has a log of its own': { ...old, '.new': next, '.new.wal': log },
      'the copy is whole': { ...old, '.new': next },
      'the copy is ready': { ...old, '.ready': next },
      'the old log is gone': { '': old[''], '.ready': next },
      'the copy is in place': folded,
      'a process that created a database left its own': {
        ...old,
        [OTHER]: next.subarray(0, 5_000),
        [`${OTHER}.wal`]: log,
      },
    }))
      expect(await daysThen(files), name).toBe(DAYS);
  });

  it('is left whole, no matter how many pages of the new file were written', async () => {
    const { '': next } = folded;
    const pages = Array.from({ length: Math.ceil(next.length / PAGE) }, (_, index) => index * PAGE);
    const chosen = pages.filter((_, index) => index < 4 || index % Math.ceil(pages.length / 6) === 0);
    for (const end of chosen)
      expect(await daysThen({ ...old, '.new': next.subarray(0, end) }), `cut at ${end}`).toBe(DAYS);
    expect(chosen.length).toBeGreaterThan(8);
  });

  it('is finished by one of several processes that open it at once', async () => {
    const path = await put({ ...old, '.ready': folded[''] });
    const first = await holdElsewhere(path, 'readership run');
    const opening = liveWarehouse(path);
    await first.letGo();
    expect(await daysIn(await opening)).toBe(DAYS);
  });

  it('may be folded while it is being written, no other process gets in between, and it keeps its settings', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const options = { command: 'test', maxWaitMs: 0, now: () => new Date() };
    const warehouse = await openWarehouse(path, options);
    const settings = () =>
      valuesOf(warehouse, "SELECT current_setting('memory_limit'), current_setting('threads')::INTEGER");
    const [memory] = await settings();
    let inode = (await stat(path)).ino;
    let folds = 0;
    await warehouse.withOneThread(async () => {
      for (let day = 0; day < 4 * DAYS; day++) {
        await addDay(warehouse, day, ROWS);
        const now = (await stat(path)).ino;
        if (now === inode) continue;
        inode = now;
        folds += 1;
        await expect(openElsewhere(path)).rejects.toThrow('Could not set lock on file');
        expect(await settings()).toEqual([memory, 1]);
      }
    });
    expect(folds).toBeGreaterThan(0);
    expect(await daysIn(warehouse)).toBe(4 * DAYS);
    await warehouse.close();
    expect(await daysIn(await liveWarehouse(path))).toBe(4 * DAYS);
  });
});

/** Opens a database in a separate process; rejects with DuckDB's message. */
const openElsewhere = (path: string) =>
  promisify(execFile)(process.execPath, [
    ...['--input-type=module', '--eval'],
    "import { DuckDBInstance } from '@duckdb/node-api'; await DuckDBInstance.create(process.argv[1]);",
    path,
  ]);
