import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newStore } from '../open-history.js';
import { page, store } from './stored-days.js';

const MACROS = [
  "top_pages('2026-11-01', '2026-11-02')",
  "changes('2026-11-01', '2026-11-02')",
  "human_vs_ai('2026-11-01', '2026-11-02', 'day')",
  "page_history('/only-in-b')",
  "page_addresses('/only-in-b', '2026-11-01', '2026-11-02')",
  "movers('2026-10-26')",
  "usual_range('2026-10-26')",
  "dropped_days('2026-11-02')",
];

/** Histories, attached as `a`, `b` and `empty` to a separate database. */
async function attach() {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  for (const name of ['a', 'b', 'empty']) {
    const history = await newStore();
    const days = { '2026-11-01': [page(`/only-in-${name}`, 1), page('/both', 3)], '2026-11-02': [] };
    const projects = name === 'empty' ? [] : ['prj_2', 'prj_1'];
    for (const project of projects) await store(history, project, days);
    await history.write();
    const file = history.path;
    await connection.run(`ATTACH '${file}' AS ${name} (READ_ONLY)`);
  }
  const rows = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson();
  const close = () => {
    connection.closeSync();
    instance.closeSync();
  };
  return { rows, use: (name: string) => connection.run(`USE ${name}`), close };
}

describe('a macro of an attached history', () => {
  let attached: Awaited<ReturnType<typeof attach>>;
  beforeAll(async () => {
    attached = await attach();
  });
  afterAll(() => {
    attached.close();
  });

  it.each(MACROS)('%s answers once its database is used, never from another, and says so', async (macro) => {
    await attached.use('b');
    for (const own of [macro, `b.${macro}`])
      await expect(attached.rows(`FROM ${own}`)).resolves.toBeDefined();
    for (const other of ['a', 'empty']) {
      await attached.use(other);
      await expect(attached.rows(`FROM b.${macro}`)).rejects.toThrow(
        /reads the current database.*run USE with the attached/,
      );
    }
    await attached.use('memory');
    await expect(attached.rows(`FROM b.${macro}`)).rejects.toThrow(/Did you mean ".*\bb\.\w+/);
  });

  it('orders pages with the same views, and the same path in several projects', async () => {
    await attached.use('a');
    const top = await attached.rows("FROM top_pages('2026-11-01', '2026-11-02')");
    expect(top.map(({ path, project }) => [path, project])).toEqual([
      ['/both', 'prj_1'],
      ['/both', 'prj_2'],
      ['/only-in-a', 'prj_1'],
      ['/only-in-a', 'prj_2'],
    ]);
  });
});
