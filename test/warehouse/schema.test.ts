import { execFile } from 'node:child_process';
import { copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import { openHistory } from '../../src/warehouse/published.js';
import { tablesOf } from '../../src/warehouse/digests.js';
import { answerOf } from '../duckdb.js';
import { closeNow, execute, inWarehouse, liveWarehouse, rowsOf, valuesOf } from '../open-warehouse.js';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { holdElsewhere } from './other-process.js';

const BUILT = new URL('../../dist/warehouse/empty.duckdb', import.meta.url);
const OPEN = { command: 'readership test', now: () => new Date(), maxWaitMs: 0 };

describe('a database', () => {
  it('is created in a private directory, with the version of its schema; opening it again creates nothing', async () => {
    const directory = join(await tempDir(), 'deep', 'data');
    const warehouse = await liveWarehouse(join(directory, 'warehouse.duckdb'));
    expect((await stat(directory)).mode & 0o077).toBe(0);
    expect(await valuesOf(warehouse, 'FROM schema_version')).toEqual([28]);
    await execute(
      warehouse,
      `INSERT INTO platform_facts VALUES ('prj_1', 'first day', '"2026-01-01"', '2026-01-01')`,
    );
    await closeNow(warehouse);
    const again = await liveWarehouse(warehouse.path);
    expect(await valuesOf(again, 'FROM schema_version')).toEqual([28]);
    expect(await rowsOf(again, 'FROM platform_facts')).toHaveLength(1);
  });

  it('is copied from the one that the build wrote, which has this version and no data, and gets its own id', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    await copyFile(BUILT, path);
    const before = await stat(path);
    const warehouse = await openWarehouse(path, OPEN);
    // Opening it changes nothing.
    expect((await stat(path)).ino).toBe(before.ino);
    for (const table of await tablesOf(warehouse, 'main'))
      expect(await rowsOf(warehouse, `FROM ${table}`), table).toEqual([]);
    const ids = await valuesOf(warehouse, 'SELECT id FROM this_file');
    await warehouse.close();
    for (let count = 0; count < 2; count++) {
      const other = join(await tempDir(), 'warehouse.duckdb');
      await (await holdElsewhere(other, 'readership export')).letGo();
      ids.push(...(await inWarehouse(other, (created) => valuesOf(created, 'SELECT id FROM this_file'))));
      expect(await readdir(dirname(other))).toEqual(['warehouse.duckdb']);
      expect((await stat(other)).mode & 0o777).toBe(0o600);
    }
    expect(new Set(ids).size).toBe(3);
  });

  it('that several processes create at once is created only once', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const holders = Array.from({ length: 4 }, () =>
      holdElsewhere(path, 'readership export').then((holder) => holder.letGo()),
    );
    await Promise.all(holders);
    expect(await readdir(dirname(path))).toEqual(['warehouse.duckdb']);
    await openWarehouse(path, OPEN).then((warehouse) => warehouse.close());
  });

  it('that is missing is not created beside its log, which is kept', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    await writeFile(`${path}.wal`, 'a log');
    await expect(openWarehouse(path, OPEN)).rejects.toThrow(`move ${path}.wal away`);
    expect(await readdir(dirname(path))).toEqual(['warehouse.duckdb.wal']);
  });

  it.each([
    [
      'a newer version',
      999,
      'a newer Readership (schema 999; this one has schema 28), and was not changed: install the newer',
    ],
    [
      'an older version',
      12,
      'an older Readership (schema 12; this one has schema 28), and was not changed: open it with',
    ],
  ])('of %s is refused and left unchanged', async (_, version, message) => {
    const warehouse = await liveWarehouse();
    await closeNow(warehouse);
    const { path } = warehouse;
    await answerOf(
      path,
      `UPDATE schema_version SET version = ${version}`,
      'DROP VIEW site_days',
      'CHECKPOINT',
    );
    const before = await readFile(path);
    const opening = openWarehouse(path, OPEN);
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow(message);
    // As a published history, it is refused as well, by every command that reads it.
    await expect(openHistory(path)).rejects.toThrow(message);
    expect((await readFile(path)).equals(before)).toBe(true);
    expect(await answerOf(path, "FROM duckdb_views() WHERE view_name = 'site_days'")).toEqual([]);
  });

  it('without this schema, in which it cannot be created, is unchanged', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    // This table makes the schema fail after it has created others.
    await answerOf(path, 'CREATE TABLE runs (mine INTEGER)');
    await expect(openWarehouse(path, OPEN)).rejects.toThrow(/runs/);
    expect(await readdir(dirname(path))).toEqual(['warehouse.duckdb']);
    expect(await answerOf(path, 'FROM duckdb_tables()')).toHaveLength(1);
    await answerOf(path, 'DROP TABLE runs');
    expect(await valuesOf(await liveWarehouse(path), 'FROM schema_version')).toEqual([28]);
  });

  it('in a directory that cannot be created is refused with advice', async () => {
    const directory = await tempDir();
    await writeFile(join(directory, 'data'), 'a file');
    const opening = openWarehouse(join(directory, 'data', 'warehouse.duckdb'), OPEN);
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow('Set dataDir');
  });
});

describe('a workspace of 0.4.0', () => {
  const ARCHIVE = fileURLToPath(new URL('../history/workspace-of-0.4.0.tar.gz', import.meta.url));

  it.each([['run'], ['status'], ['sql', 'SELECT 1'], ['restore', '--from', 'data/history.duckdb']])(
    'is refused by %s in one sentence, and left unchanged',
    async (...args) => {
      const cwd = await tempDir();
      await promisify(execFile)('tar', ['-xzf', ARCHIVE, '-C', cwd]);
      const files = ['warehouse.duckdb', 'warehouse.duckdb.wal', 'history.duckdb', 'effects.log'];
      const contents = () => Promise.all(files.map((file) => readFile(join(cwd, 'data', file))));
      const before = await contents();
      const env = { READERSHIP_API_KEY: 'adm_not-a-real-key', READERSHIP_MACHINE: 'fixture' };
      const { code, stderr } = await callCli(args, { cwd, env });
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /\.duckdb was written by an older Readership \(schema 27; .+ open it with Readership 0\.4\.$/m,
      );
      expect(await contents()).toEqual(before);
    },
  );
});

describe('the comments of a database written by an older version', () => {
  it('get the current wording when it is opened, and only once', async () => {
    const warehouse = await liveWarehouse();
    await closeNow(warehouse);
    const { path } = warehouse;
    const words = "SELECT comment FROM duckdb_tables() WHERE table_name = 'deliveries'";
    const older = { comment: 'Reports by mail' };
    const oldWording = `COMMENT ON TABLE deliveries IS '${older.comment}'`;
    await answerOf(path, oldWording, 'COMMENT ON TABLE schema_version IS NULL', 'CHECKPOINT');
    expect(await answerOf(path, words)).toEqual([older]);
    await closeNow(await liveWarehouse(path));
    expect(await answerOf(path, words)).toMatchObject([
      { comment: expect.stringContaining(' were sent: ') as string },
    ]);
    await answerOf(path, oldWording, 'CHECKPOINT');
    await closeNow(await liveWarehouse(path));
    expect(await answerOf(path, words)).toEqual([older]);
  });
});
