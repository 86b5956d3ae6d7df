import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../src/errors.js';
import { openHistory } from '../../src/warehouse/published.js';
import { tablesOf } from '../../src/warehouse/digests.js';
import { publish } from '../../src/warehouse/publish.js';
import type { Reader } from '../../src/warehouse/query.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { closeNow, execute, inHistory, liveWarehouse, rowsOf, valuesOf } from '../open-warehouse.js';
import { callCli } from '../run-cli.js';
import { syncedWhile } from '../synced.js';
import { stateBeside } from '../open-state.js';
import { tempDir } from '../temp-dir.js';

async function view(warehouse: Warehouse, ...values: [day: string, path: string, human: number][]) {
  const insert = "INSERT INTO page_views VALUES ('prj_1', $day::DATE, $path, $path, $human, 0, $human)";
  for (const [day, path, human] of values) await execute(warehouse, insert, { day, path, human });
}

const historyBeside = ({ path }: Warehouse) => join(dirname(path), 'history.duckdb');

const pathsIn = (history: Reader) => valuesOf(history, 'SELECT path FROM page_views ORDER BY day');

describe('the published history', () => {
  it('has the contents of the live database, sorted by quarter, page and day, and is read-only', async () => {
    const warehouse = await liveWarehouse();
    await view(warehouse, ['2026-11-02', '/a', 1], ['2026-11-01', '/b', 2], ['2026-11-01', '/a', 3]);
    await view(warehouse, ['2026-09-30', '/b', 4]);
    const directory = join(await tempDir(), "the team's");
    await mkdir(directory);
    const target = join(directory, 'history.duckdb');
    const bytes = await publish(warehouse, target);
    const file = await stat(target);
    expect(file.size).toBe(bytes);
    expect(file.mode & 0o777).toBe(0o444);
    await inHistory(target, async (history) => {
      expect(await valuesOf(history, 'SELECT human FROM page_views')).toEqual([4, 3, 1, 2]);
      for (const name of await tablesOf(warehouse, 'main'))
        expect(await rowsOf(history, `FROM ${name} ORDER BY ALL`), name).toEqual(
          await rowsOf(warehouse, `FROM ${name} ORDER BY ALL`),
        );
    });
    expect(await readdir(directory)).toEqual(['history.duckdb']);
  });

  it('is on disk, and so is the new live file, before it takes the place of the last one', async () => {
    const warehouse = await liveWarehouse();
    const target = historyBeside(warehouse);
    const onDisk = ['the new file', 'its directory'];
    expect(await syncedWhile(target, () => publish(warehouse, target))).toEqual(onDisk);
    await view(warehouse, ['2026-11-01', '/a', 1]);
    expect(await syncedWhile(target, () => publish(warehouse, target))).toEqual(onDisk);
    const rewriting = () => publish(warehouse, target, { isWhole: true });
    expect(await syncedWhile(warehouse.path, rewriting)).toEqual(onDisk);
  });

  it('leaves the live database as it was, with what a user made in it', async () => {
    const warehouse = await liveWarehouse();
    await view(warehouse, ['2026-11-02', '/b', 1], ['2026-08-02', '/a', 2]);
    await warehouse.exclusive(async (connection) => {
      await connection.run(`
        INSERT INTO platform_facts VALUES ('prj_1', 'first day', '"2026-08-02"', '2026-11-18 05:00:00');
        CREATE SCHEMA backup;
        CREATE TABLE backup.page_views AS FROM page_views;
        CREATE TABLE backup.platform_facts AS FROM platform_facts;
        CREATE SEQUENCE numbers START 5;
        CREATE TABLE backup."my notes" (id INTEGER DEFAULT nextval('numbers'), note VARCHAR UNIQUE);
        INSERT INTO backup."my notes" (note) VALUES ('one'), ('two');
        COMMENT ON TABLE backup."my notes" IS 'mine'`);
    });
    const stateOf = async (reader: Reader) => {
      const names = await valuesOf(
        reader,
        `SELECT '"' || schema_name || '"."' || table_name || '"' FROM duckdb_tables() ORDER BY ALL`,
      );
      const digests = names.map(
        (name) =>
          `SELECT '${String(name)}' AS name, count(*) AS rows, sum(hash(each)::HUGEINT)::VARCHAR AS digest FROM ${String(name)} AS each`,
      );
      const tables = await rowsOf(reader, 'SELECT sql, comment FROM duckdb_tables() ORDER BY ALL');
      const rows = await rowsOf(reader, digests.join(' UNION ALL '));
      return { tables, rows, id: await rowsOf(reader, 'FROM this_file') };
    };
    const before = await stateOf(warehouse);
    expect(before.rows).toContainEqual(expect.objectContaining({ name: '"backup"."page_views"', rows: 2 }));
    const { ino } = await stat(warehouse.path);
    await publish(warehouse, historyBeside(warehouse), { isWhole: true });
    expect((await stat(warehouse.path)).ino).not.toBe(ino);
    expect(await stateOf(warehouse)).toEqual(before);
    expect(await valuesOf(warehouse, `SELECT nextval('numbers')`)).toEqual([7]);
    await closeNow(warehouse);
    expect(await stateOf(await liveWarehouse(warehouse.path))).toEqual(before);
  });

  it('has the same definitions and comments as the live database, but its own id', async () => {
    const warehouse = await liveWarehouse();
    await publish(warehouse, historyBeside(warehouse));
    const definitionsIn = async (reader: Reader) => {
      const [id] = await valuesOf(reader, 'SELECT id FROM this_file');
      const definitions = await Promise.all(
        [
          'SELECT table_name, sql, comment FROM duckdb_tables()',
          'SELECT view_name, sql, comment FROM duckdb_views() WHERE NOT internal',
          'SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal',
          "SELECT function_name, parameters, macro_definition, comment FROM duckdb_functions() WHERE NOT internal AND function_type LIKE '%macro'",
          'FROM schema_version',
        ].map((sql) => rowsOf(reader, `${sql} ORDER BY ALL`)),
      );
      return { id, definitions: JSON.stringify(definitions).replaceAll(String(id), 'ID') };
    };
    const live = await definitionsIn(warehouse);
    expect(live.definitions).toContain('movers');
    await inHistory(historyBeside(warehouse), async (history) => {
      const published = await definitionsIn(history);
      expect(JSON.parse(published.definitions)).toEqual(JSON.parse(live.definitions));
      expect(published.id).not.toBe(live.id);
    });
  });

  it('stays readable and unchanged while another process publishes; the next to open it gets the new one', async () => {
    const directory = await tempDir();
    await writeFile(
      join(directory, 'readership.yaml'),
      'baseUrl: http://127.0.0.1:1\nprojects: [{ id: prj_1 }]\n',
    );
    const warehouse = await liveWarehouse(join(directory, 'data', 'warehouse.duckdb'));
    const target = historyBeside(warehouse);
    await view(warehouse, ['2026-11-01', '/old', 1]);
    await publish(warehouse, target);
    await view(warehouse, ['2026-11-02', '/new', 1]);
    await closeNow(warehouse);
    await (await stateBeside(warehouse)).close();

    const reader = await openHistory(target);
    expect(await pathsIn(reader)).toEqual(['/old']);
    expect(await callCli(['publish'], { cwd: directory })).toMatchObject({ code: 0 });
    expect(await pathsIn(reader)).toEqual(['/old']);
    reader.close();
    expect(await inHistory(target, pathsIn)).toEqual(['/old', '/new']);
  });

  it('stays in place when publishing fails, with no unfinished files left', async () => {
    const warehouse = await liveWarehouse();
    const target = historyBeside(warehouse);
    await view(warehouse, ['2026-11-01', '/old', 1]);
    await publish(warehouse, target);
    await warehouse.exclusive(async (connection) => {
      await connection.run('ALTER TABLE page_views RENAME path TO route');
    });
    const failed = publish(warehouse, target, { isWhole: true });
    await expect(failed).rejects.toThrow(StorageError);
    await expect(failed).rejects.toThrow('the previous one was kept');
    expect(await inHistory(target, pathsIn)).toEqual(['/old']);
    expect((await readdir(dirname(target))).filter((name) => name.includes('publishing'))).toEqual([]);
    // This would fail if the unfinished copy were still attached.
    await view(warehouse, ['2026-11-02', '/new', 1]);
  });

  it('that cannot be put in place is reported as a storage error', async () => {
    const warehouse = await liveWarehouse();
    await mkdir(join(historyBeside(warehouse), 'in-the-way'), { recursive: true });
    await expect(publish(warehouse, historyBeside(warehouse))).rejects.toThrow(StorageError);
  });

  it('that was never published says how to publish it', async () => {
    const opening = openHistory(join(await tempDir(), 'history.duckdb'));
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow('readership export');
  });
});
