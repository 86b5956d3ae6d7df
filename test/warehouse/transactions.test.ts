import { DATE, DOUBLE, DuckDBDateValue, VARCHAR } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { AppendedColumn, Transaction } from '../../src/warehouse/transaction.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { closeNow, execute, liveWarehouse, rowsOf, valuesOf } from '../open-warehouse.js';

interface Row {
  readonly path: string;
  readonly views: number;
}

const columnsOf = (rows: readonly Row[]): AppendedColumn[] => [
  { type: VARCHAR, same: duckdb.create_varchar('prj_1') },
  { type: DATE, same: duckdb.create_date(new DuckDBDateValue(20_000)) },
  { type: VARCHAR, values: rows.map(({ path }) => path) },
  { type: VARCHAR, same: duckdb.create_varchar('/') },
  { type: DOUBLE, values: rows.map(({ views }) => views) },
  { type: DOUBLE, values: rows.map(() => 0) },
  { type: DOUBLE, values: rows.map(({ views }) => views) },
];

const rows = (count: number): Row[] =>
  Array.from({ length: count }, (_, views) => ({ path: `/${views}`, views }));
const append = (warehouse: Warehouse, given: readonly Row[], columns = columnsOf(given)) =>
  warehouse.transaction((transaction) => transaction.append('page_views', given.length, columns));

async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 3; round++) {
    collect();
    await new Promise(setImmediate);
  }
}

const STORED =
  'SELECT count(*) AS rows, count(DISTINCT path) AS paths, coalesce(sum(human), 0)::BIGINT AS views FROM page_views';
const stored = async (warehouse: Warehouse) => (await rowsOf(warehouse, STORED))[0];

describe('appending', () => {
  it.each([0, 1, 2_047, 2_048, 2_049, 4_096, 6_144, 10_000])('stores all of %i rows', async (count) => {
    const warehouse = await liveWarehouse();
    await append(warehouse, rows(count));
    const views = rows(count).reduce((sum, row) => sum + row.views, 0);
    expect(await stored(warehouse)).toEqual({ rows: count, paths: count, views });
  });

  it('keeps paths exactly as sent', async () => {
    const paths = ['', "/it's", '/ü/日本/🦆', '/a\nb\tc\u0000d', '/"quoted"', '/'.repeat(5_000), '/a', '/a '];
    const given = paths.map((path, views) => ({ path, views }));
    const warehouse = await liveWarehouse();
    await append(warehouse, given);
    expect(await valuesOf(warehouse, 'SELECT path FROM page_views ORDER BY human')).toEqual(paths);
  });

  it('keeps long paths of several transactions', async () => {
    const warehouse = await liveWarehouse();
    const prefix = '/docs/a-path-that-is-too-long-to-be-inlined/';
    const all = Array.from({ length: 7_000 }, (_, views) => ({ path: `${prefix}${views}`, views }));
    const parts = [all.slice(0, 3), all.slice(2, 2_050), all.slice(2_040), all];
    for (const given of parts) await append(warehouse, given);
    const matching = `SELECT count(*) FROM page_views WHERE path = '${prefix}' || human`;
    expect(await valuesOf(warehouse, matching)).toEqual([parts.flat().length]);
  });

  it.each([
    ['first', 1],
    ['second', 2],
  ])('that fails in the %s chunk stores nothing, not even after closing', async (_, failing) => {
    const warehouse = await liveWarehouse();
    await append(warehouse, rows(3));
    let chunks = 0;
    const column = {
      type: DOUBLE,
      get values() {
        if (++chunks === failing) throw new Error('no such number');
        return Array<number>(5_000).fill(0);
      },
    };
    const columns = columnsOf(rows(5_000)).with(5, column);
    await expect(append(warehouse, rows(5_000), columns)).rejects.toThrow('no such number');
    expect(await stored(warehouse)).toMatchObject({ rows: 3 });
    await closeNow(warehouse);
    expect(await stored(await liveWarehouse(warehouse.path))).toMatchObject({ rows: 3 });
  });

  it('that fails stores nothing later either, when DuckDB frees what was appended', async () => {
    const warehouse = await liveWarehouse();
    const failed = warehouse.transaction(async (transaction) => {
      await transaction.append('page_views', 3, columnsOf(rows(3)));
      throw new Error('halfway');
    });
    await expect(failed).rejects.toThrow('halfway');
    await collectGarbage();
    expect(await stored(warehouse)).toMatchObject({ rows: 0 });
  });

  it('keeps numbers of any size exactly', async () => {
    const views = [0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER];
    const given = views.map((count) => ({ path: `/${count}`, views: count }));
    const warehouse = await liveWarehouse();
    await append(warehouse, given);
    expect(await rowsOf(warehouse, 'SELECT path, human AS views FROM page_views ORDER BY human')).toEqual(
      given,
    );
  });

  it('that breaks a constraint stores nothing, not even what was appended before', async () => {
    const warehouse = await liveWarehouse();
    const broken = warehouse.transaction(async (transaction) => {
      await transaction.append('page_views', 3_000, columnsOf(rows(3_000)));
      await transaction.appendRow('page_views', [null, new DuckDBDateValue(20_000), '/', '/', 1, 0, 1]);
    });
    await expect(broken).rejects.toThrow(/NOT NULL/);
    expect(await stored(warehouse)).toMatchObject({ rows: 0 });
    await append(warehouse, rows(2));
    await closeNow(warehouse);
    expect(await stored(await liveWarehouse(warehouse.path))).toMatchObject({ rows: 2 });
  });
});

describe('transactions', () => {
  const insert = (path: string) =>
    `INSERT INTO page_views VALUES ('p', '2026-01-01', '${path}', '${path}', 1, 0, 1)`;

  it.each([
    ['throw', () => Promise.reject(new Error('halfway')), 'halfway'],
    ['fail', (transaction: Transaction) => transaction.execute('INSERT INTO nowhere VALUES (1)'), /nowhere/],
  ])('that %s store nothing, and the next one works', async (_, fail, words) => {
    const warehouse = await liveWarehouse();
    const failed = warehouse.transaction(async (transaction) => {
      await transaction.execute(insert('/a'));
      await fail(transaction);
    });
    await expect(failed).rejects.toThrow(words);
    expect(await stored(warehouse)).toMatchObject({ rows: 0 });
    await execute(warehouse, insert('/b'));
    expect(await stored(warehouse)).toMatchObject({ rows: 1 });
  });

  it('take turns: none sees or ends another', async () => {
    const warehouse = await liveWarehouse();
    const log: string[] = [];
    const one = (name: string, fail: boolean) =>
      warehouse.transaction(async (transaction) => {
        log.push(`${name} begins`);
        await transaction.execute(insert(`/${name}`), {});
        await new Promise(setImmediate);
        log.push(`${name} ends`);
        if (fail) throw new Error(name);
      });
    await Promise.allSettled([one('first', false), one('second', true), one('third', false)]);
    expect(log).toEqual(['first', 'second', 'third'].flatMap((name) => [`${name} begins`, `${name} ends`]));
    expect(await valuesOf(warehouse, 'SELECT path FROM page_views ORDER BY path')).toEqual([
      '/first',
      '/third',
    ]);
  });

  it('make a query wait until they are over', async () => {
    const warehouse = await liveWarehouse();
    const writing = warehouse.transaction(async (transaction) => {
      await transaction.execute(insert('/a'), {});
      await new Promise(setImmediate);
      await transaction.execute(insert('/b'), {});
    });
    expect(await stored(warehouse)).toMatchObject({ rows: 2 });
    await writing;
  });
});

describe('loading with one thread', () => {
  it('restores the number of DuckDB threads, even after an error', async () => {
    const warehouse = await liveWarehouse();
    const threads = () => valuesOf(warehouse, "SELECT current_setting('threads')::INTEGER");
    const before = await threads();
    expect(await warehouse.withOneThread(threads)).toEqual([1]);
    expect(await threads()).toEqual(before);
    const failing = warehouse.withOneThread(() => Promise.reject(new Error('the server is down')));
    await expect(failing).rejects.toThrow('the server is down');
    expect(await threads()).toEqual(before);
  });
});
