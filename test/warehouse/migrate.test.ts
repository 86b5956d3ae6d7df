import { execFile } from 'node:child_process';
import { copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { StorageError } from '../../src/errors.js';
import { FIRST_DAY, readFact } from '../../src/export/facts.js';
import { readDeliveries } from '../../src/mail/ledger.js';
import { pageOf } from '../../src/page.js';
import { OtherVersionError } from '../../src/warehouse/migrate.js';
import { openWarehouse } from '../../src/warehouse/open.js';
import { openHistory } from '../../src/warehouse/published.js';
import { tablesOf } from '../../src/warehouse/digests.js';
import { answerOf } from '../duckdb.js';
import { closeNow, execute, inWarehouse, liveWarehouse, rowsOf, valuesOf } from '../open-warehouse.js';
import { CASES, randomPaths } from '../paths.js';
import { callCli } from '../run-cli.js';
import { tempDir } from '../temp-dir.js';
import { holdElsewhere } from './other-process.js';

const BUILT = new URL('../../dist/warehouse/empty.duckdb', import.meta.url);
const OPEN = { command: 'readership test', now: () => new Date(), maxWaitMs: 0 };

const NO_DATASET = { dataset: null, dataset_places: [] };

const VERSIONS = 'SELECT version FROM schema_version ORDER BY version';

/** The statements of the migrations up to a version, as an earlier version ran them. */
async function releasedUpTo(version: number): Promise<string[]> {
  const directory = new URL('../../src/warehouse/migrations/', import.meta.url);
  const released = (await readdir(directory)).sort().filter((file) => Number.parseInt(file) <= version);
  const texts = await Promise.all(released.map((file) => readFile(new URL(file, directory), 'utf8')));
  return [...texts, `CREATE TABLE schema_version AS SELECT ${version} AS version`];
}

describe('a database', () => {
  it('is created in a private directory, with every migration recorded once; opening it again applies none', async () => {
    const directory = join(await tempDir(), 'deep', 'data');
    const warehouse = await liveWarehouse(join(directory, 'warehouse.duckdb'));
    expect((await stat(directory)).mode & 0o077).toBe(0);
    const versions = await valuesOf(warehouse, VERSIONS);
    expect(versions).toEqual(versions.map((_, index) => index + 12));
    await execute(
      warehouse,
      `INSERT INTO platform_facts VALUES ('prj_1', 'first day', '"2026-01-01"', '2026-01-01')`,
    );
    await closeNow(warehouse);
    const again = await liveWarehouse(warehouse.path);
    expect(await valuesOf(again, VERSIONS)).toEqual(versions);
    expect(await rowsOf(again, 'FROM platform_facts')).toHaveLength(1);
  });

  it('is copied from the one that the build wrote, which has this version and no data, and gets its own id', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    await copyFile(BUILT, path);
    const before = await stat(path);
    const warehouse = await openWarehouse(path, OPEN);
    // Opening it migrates nothing.
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

  it('of 0.2.0 gets the tables of this version, and keeps its rows', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const skip = "INSERT INTO page_skips VALUES ('prj_1', '/a', '2026-11-01', NULL)";
    const lake = "INSERT INTO workspace BY NAME SELECT 'ours' AS id, '/lake' AS lake";
    const start = "INSERT INTO history_starts VALUES ('prj_1', '2025-03-04', '2026-11-20')";
    await answerOf(path, ...(await releasedUpTo(12)), skip, lake, start);
    const unchanged = openWarehouse(path, { ...OPEN, mustBeMigrated: true });
    await expect(unchanged).rejects.toThrow(OtherVersionError);
    const warehouse = await liveWarehouse(path);
    const since = { ...FIRST_DAY, isLimit: true };
    expect(await readFact(warehouse, 'prj_1', since, new Date('2026-12-20'))).toBe('2025-03-04');
    expect(await readFact(warehouse, 'prj_1', since, new Date('2026-12-21'))).toBeUndefined();
    const tables = await tablesOf(warehouse, 'main');
    expect(tables).toEqual(await tablesOf(await liveWarehouse(), 'main'));
    expect(await rowsOf(warehouse, 'FROM page_skips')).toHaveLength(1);
    const nowhere = { machine: null, host: null, path: null, ...NO_DATASET };
    expect(await rowsOf(warehouse, 'FROM workspace')).toEqual([{ id: 'ours', ...nowhere }]);
  });

  it('of 0.3 loses what it recorded for its lake, and keeps everything else', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const place = { machine: '0123456789abcdef', host: 'web-1', path: '/data' };
    const workspace =
      "INSERT INTO workspace BY NAME SELECT 'ours' AS id, '0123456789abcdef' AS machine, 'web-1' AS host, '/data' AS path, " +
      "'/lake' AS lake, ['/old', '/lake'] AS lakes, 9 AS publications, 7 AS claim, 3 AS claim_after, 0 AS claim_needed, now()::TIMESTAMP AS claim_needed_at";
    const month = "INSERT INTO lake_months VALUES ('views', '2026-11', 'f', 'd', '2026-11-20', 'a.parquet')";
    const facts =
      "INSERT INTO platform_facts VALUES ('prj_1', 'looked at', '{}', '2026-11-20'), ('prj_1', 'first day', '\"2025-03-04\"', '2026-11-20')";
    const view = "INSERT INTO page_views VALUES ('prj_1', '2026-11-01', '/a', 3, 1, 4)";
    await answerOf(path, ...(await releasedUpTo(19)), workspace, month, facts, view, 'CHECKPOINT');
    const warehouse = await liveWarehouse(path);
    expect(await tablesOf(warehouse, 'main')).toEqual(await tablesOf(await liveWarehouse(), 'main'));
    expect(await rowsOf(warehouse, 'FROM workspace')).toEqual([{ id: 'ours', ...place, ...NO_DATASET }]);
    expect(await rowsOf(warehouse, 'FROM page_views')).toHaveLength(1);
    expect(await readFact(warehouse, 'prj_1', FIRST_DAY, new Date('2026-12-20'))).toBe('2025-03-04');
    expect(await rowsOf(warehouse, 'FROM platform_facts')).toHaveLength(1);
    await closeNow(warehouse);
    const again = await liveWarehouse(path);
    expect(await rowsOf(again, 'FROM workspace')).toEqual([{ id: 'ours', ...place, ...NO_DATASET }]);
  });

  it('of 0.3.0 keeps what it sent, without the words of corrections', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const sent = (period: string, state: string) =>
      `INSERT INTO deliveries BY NAME SELECT 'weekly' AS report, 'prj_1' AS project, '${period}' AS period,
       'docs@example.com' AS recipient, '${state}' AS state, 'smtp' AS via, '<1@example.com>' AS message_id, 1 AS attempts,
       now() AS tried_at, 7 AS days_covered, 100 AS human, 50 AS ai, '[]' AS said`;
    await answerOf(
      path,
      ...(await releasedUpTo(19)),
      'CREATE MACRO likely_breaks(last_day) AS TABLE SELECT last_day',
      sent('2026-W46', 'sent'),
      sent('2026-W46 correction', 'sent'),
    );
    const warehouse = await liveWarehouse(path);
    const kept = { human: 100, ai: 50, days_covered: 7 };
    expect(await readDeliveries(warehouse)).toMatchObject([
      { ...kept, period: '2026-W46' },
      { ...kept, period: '2026-W46 correction' },
    ]);
    expect(await rowsOf(warehouse, "FROM duckdb_functions() WHERE function_name = 'likely_breaks'")).toEqual(
      [],
    );
    expect(await tablesOf(warehouse, 'main')).toEqual(await tablesOf(await liveWarehouse(), 'main'));
  });

  it('of 0.3.0 gets the page of each path, whatever it is, and one skip of each page', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    const paths = [...new Set([...CASES.map(([given]) => given), ...randomPaths(5_000)])];
    const views = `INSERT INTO page_views SELECT 'prj_1', DATE '2026-11-01', given, 1, 2, 3 FROM (SELECT unnest(from_json('${JSON.stringify(paths).replaceAll("'", "''")}', '["VARCHAR"]')) AS given)`;
    const skips = `INSERT INTO page_skips VALUES ('prj_1', '/a/', '2026-11-01', '2026-12-01'), ('prj_1', '/a.md', '2026-11-02', NULL),
      ('prj_1', '/b.html', '2026-11-03', '2027-01-01'), ('prj_1', '/b', '2026-11-04', '2026-12-01'), ('prj_2', '/a', '2026-11-05', '2026-12-02')`;
    await answerOf(path, ...(await releasedUpTo(19)), views, skips);
    const warehouse = await liveWarehouse(path);
    const rows = await warehouse.query(
      'SELECT path, page, human, ai, total FROM page_views',
      z.object({ path: z.string(), page: z.string(), human: z.int(), ai: z.int(), total: z.int() }),
    );
    expect(rows).toHaveLength(paths.length);
    expect(rows.filter((row) => row.page !== pageOf(row.path) || row.human !== 1 || row.total !== 3)).toEqual(
      [],
    );
    expect(
      await rowsOf(
        warehouse,
        'SELECT project, path, skipped_until::VARCHAR AS until FROM page_skips ORDER BY ALL',
      ),
    ).toEqual([
      { project: 'prj_1', path: '/a', until: null },
      { project: 'prj_1', path: '/b', until: '2027-01-01' },
      { project: 'prj_2', path: '/a', until: '2026-12-02' },
    ]);
  });

  it.each([
    ['a newer version', 999, 'newer Readership (schema 999'],
    ['a version before 0.2.0', 5, 'Open it once with Readership 0.2.0'],
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

  it('whose migration fails is unchanged, with no part of any migration applied', async () => {
    const path = join(await tempDir(), 'warehouse.duckdb');
    // This table makes the first migration fail after it has created others.
    await answerOf(path, 'CREATE TABLE runs (mine INTEGER)');
    await expect(openWarehouse(path, OPEN)).rejects.toThrow(/runs/);
    expect(await readdir(dirname(path))).toEqual(['warehouse.duckdb']);
    expect(await answerOf(path, 'FROM duckdb_tables()')).toHaveLength(1);
    await answerOf(path, 'DROP TABLE runs');
    expect(await valuesOf(await liveWarehouse(path), VERSIONS)).not.toEqual([]);
  });

  it('in a directory that cannot be created is refused with advice', async () => {
    const directory = await tempDir();
    await writeFile(join(directory, 'data'), 'a file');
    const opening = openWarehouse(join(directory, 'data', 'warehouse.duckdb'), OPEN);
    await expect(opening).rejects.toThrow(StorageError);
    await expect(opening).rejects.toThrow('Set dataDir');
  });
});

describe('a workspace of 0.2.0', () => {
  /** What 0.2.0 wrote: two months of views of a few pages, four jobs, a message, a skipped page, two emails and a lake, which is no longer written. */
  const ARCHIVE = fileURLToPath(new URL('workspace-of-0.2.0.tar.gz', import.meta.url));
  const COUNTS =
    'SELECT (SELECT count(*) FROM page_views)::INTEGER AS views, (SELECT count(*) FROM jobs)::INTEGER AS jobs, ' +
    '(SELECT count(*) FROM agent_messages)::INTEGER AS messages, (SELECT count(*) FROM page_skips)::INTEGER AS skips, ' +
    '(SELECT count(*) FROM deliveries)::INTEGER AS deliveries';

  it('opens with its configuration, and is migrated with all its contents', async () => {
    const cwd = await tempDir();
    await promisify(execFile)('tar', ['-xzf', ARCHIVE, '-C', cwd]);
    const env = { READERSHIP_API_KEY: 'not-a-real-key' };
    const run = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await callCli(args, { cwd, env });
      expect(code, stderr).toBe(0);
      return stdout;
    };
    expect(await run('sql', 'SELECT count(*) FROM site_weeks', '--format', 'csv')).toContain('8');
    await run('jobs', 'settle', '1', '--merged', '2026-11-23');
    await run('publish');
    const counts = JSON.parse(await run('sql', COUNTS, '--format', 'json')) as unknown;
    expect(counts).toEqual([{ views: 860, jobs: 4, messages: 1, skips: 1, deliveries: 2 }]);
  });
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
