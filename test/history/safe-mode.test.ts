import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runSql } from '../../src/sql/answer.js';
import { closeNow, execute, inHistory, newStore } from '../open-history.js';
import { runCli } from '../run-cli.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';
import { mcpClient } from '../web/mcp-client.js';

/** What an unrestricted query could reach. */
interface Surroundings {
  /** Holds `history.duckdb`, `other.duckdb`, `secret.csv` and `secret.json`. */
  readonly directory: string;
  /** A web server. */
  readonly web: string;
}

/** The reason matters: a statement that fails because of a misspelling is not prevented. */
const REFUSED: readonly (readonly [kind: string, reason: RegExp, attempts: readonly string[]])[] = [
  [
    'writes',
    /attached in read-only mode/,
    [
      "INSERT INTO skips VALUES ('p', '/', '2026-01-01', NULL)",
      "WITH one AS (SELECT 1, 'x') INSERT INTO internal.version FROM one",
      'UPDATE days SET human = 0',
      'DELETE FROM days',
      'TRUNCATE emails',
      "MERGE INTO restatements USING (SELECT 'p' AS project) AS mine USING (project) WHEN MATCHED THEN DELETE",
      'BEGIN; DELETE FROM jobs; COMMIT',
      'PREPARE wipe AS DELETE FROM days; EXECUTE wipe',
      'EXPLAIN ANALYZE DELETE FROM days',
      'DROP TABLE days',
      'DROP VIEW site_days',
      'ALTER TABLE days ADD COLUMN mine INTEGER',
      'ALTER TABLE days RENAME TO mine',
      'CREATE TABLE mine AS SELECT 1',
      'CREATE INDEX mine ON skips (path)',
      'CREATE OR REPLACE MACRO movers(week) AS TABLE SELECT 1',
      "COMMENT ON TABLE days IS 'mine'",
    ],
  ],
  [
    'files',
    /file system operations are disabled/,
    [
      "COPY page_views TO '{directory}/out.csv'",
      "COPY (SELECT 1) TO '{directory}/out.parquet' (FORMAT parquet)",
      "COPY page_views TO '{directory}/out' (PARTITION_BY (project))",
      "COPY (SELECT 1) TO '{directory}/history.duckdb'",
      "COPY (SELECT 1) TO '/dev/stderr'",
      "EXPORT DATABASE '{directory}/out'",
      "COPY days FROM '{directory}/secret.csv'",
      "IMPORT DATABASE '{directory}'",
      "FROM read_csv('{directory}/secret.csv')",
      "FROM read_json('{directory}/secret.json')",
      "FROM read_parquet('{directory}/secret.parquet')",
      "FROM read_text('{directory}/secret.csv')",
      "FROM read_blob('{directory}/secret.csv')",
      "FROM read_text('/proc/self/environ')",
      "FROM '{directory}/secret.csv'",
      "FROM '{directory}/*.csv'",
      "FROM query_table('{directory}/secret.csv')",
      "FROM glob('{directory}/*')",
      "FROM sniff_csv('{directory}/secret.csv')",
      "ATTACH '{directory}/other.duckdb' AS other (READ_ONLY)",
      "ATTACH '{directory}/new.duckdb' AS new",
      "CREATE SECRET (TYPE s3, KEY_ID 'x', SECRET 'y')",
      'FROM duckdb_secrets()',
    ],
  ],
  [
    'the network',
    /file system operations are disabled|requires the extension httpfs/,
    [
      "FROM read_csv('{web}/x.csv')",
      "FROM '{web}/x.parquet'",
      "FROM read_parquet('s3://bucket/x.parquet')",
      "ATTACH '{web}/x.duckdb' AS other",
      "COPY page_views TO '{web}/out.csv'",
    ],
  ],
  [
    'extensions',
    /extensions is disabled|file system operations are disabled/,
    [
      'INSTALL httpfs',
      "INSTALL httpfs FROM '{web}'",
      'LOAD httpfs',
      "LOAD '{directory}/mine.duckdb_extension'",
      "ATTACH '{directory}/x.sqlite' AS other (TYPE sqlite)",
    ],
  ],
  [
    'settings',
    /the configuration has been locked/,
    [
      'SET enable_external_access = true',
      'RESET enable_external_access',
      'SET lock_configuration = false',
      "SET allowed_directories = ['/']",
      "SET allowed_paths = ['{directory}/secret.csv']",
      "SET access_mode = 'READ_WRITE'",
      'SET autoload_known_extensions = true',
      "SET temp_directory = '{directory}'",
      "PRAGMA profiling_output = '{directory}/profile.json'",
      "SET memory_limit = '1TB'",
    ],
  ],
];

describe('a query of the history, in the mode of readership sql', () => {
  let workspace: string;
  let at: Surroundings;
  let asked: () => number;
  const file = () => join(at.directory, 'history.duckdb');
  const filledIn = (sql: string) => sql.replaceAll('{directory}', at.directory).replaceAll('{web}', at.web);

  beforeAll(async () => {
    workspace = await tempDir();
    await writeFile(
      join(workspace, 'readership.yaml'),
      'baseUrl: http://127.0.0.1:1\nprojects: [{ id: prj_1 }]\n',
    );
    const directory = join(workspace, 'data');
    await mkdir(directory);
    const server = await serve((_, response) => response.end('a\n1\n'));
    at = { directory, web: server.baseUrl };
    asked = () => server.seen.length;
    const history = await newStore();
    await execute(history, "INSERT INTO page_views VALUES ('prj_1', '2026-11-01', '/a', '/a', 1, 0, 1)");
    await closeNow(history);
    for (const name of ['history', 'other']) await copyFile(history.path, join(directory, `${name}.duckdb`));
    await writeFile(join(directory, 'secret.csv'), 'a,b\n1,2\n');
    await writeFile(join(directory, 'secret.json'), '{"a": 1}');
  });

  const answer = (sql: string): Promise<unknown[]> =>
    inHistory(file(), async ({ connection }) => {
      const rows: unknown[] = [];
      // This bypasses the check in `ask`: the database itself refuses them too.
      const statements = await connection.extractStatements(sql);
      for (let index = 0; index < statements.count; index++)
        rows.push(...(await (await statements.prepare(index)).runAndReadAll()).getRowsJson());
      return rows;
    });
  const hashes = async () => {
    const names = (await readdir(at.directory)).sort();
    const contents = await Promise.all(names.map((name) => readFile(join(at.directory, name))));
    return contents.map((bytes, index) => [names[index], createHash('sha256').update(bytes).digest('hex')]);
  };

  /** The error of `ask` for some SQL; empty if there is none. */
  const refusal = (sql: string): Promise<string> =>
    inHistory(file(), async ({ connection }) => {
      for await (const batch of (await runSql(connection, sql))?.batches ?? []) expect(batch).toBeDefined();
      return '';
    }).catch(String);

  it.each(REFUSED)(
    'fails if it involves %s, and leaves every file unchanged; ours refuses it before it runs',
    async (_, reason, attempts) => {
      const before = await hashes();
      for (const sql of attempts.map(filledIn)) {
        await expect(answer(sql), sql).rejects.toThrow(reason);
        expect(await refusal(sql), sql).not.toBe('');
      }
      expect(await answer('SELECT path FROM page_views')).toEqual([['/a']]);
      expect(await hashes()).toEqual(before);
      expect(asked()).toBe(0);
    },
  );

  it('is refused to an AI assistant in the separate process that answers each query', async () => {
    const before = await hashes();
    const assistant = await mcpClient(workspace);
    // Each takes a separate process, so only one of every kind is tried.
    const attempts = REFUSED.flatMap(([, , ofKind]) => ofKind.slice(0, 1)).map(filledIn);
    for (const sql of attempts)
      expect(await assistant.ask('query', { sql }), sql).toMatch(/^error: The query failed/);
    expect(await assistant.ask('query', { sql: 'SELECT path FROM page_views' })).toContain('{"path":"/a"}');
    expect(await hashes()).toEqual(before);
    expect(asked()).toBe(0);
  });

  it.each([
    ['CREATE TEMP TABLE mine AS SELECT 1', /CREATE is not a read-only statement/],
    ['CREATE TEMP MACRO two() AS 2; SELECT two()', /CREATE/],
    ['SELECT 1; SET VARIABLE mine = 1', /SET is not/],
    ['BEGIN', /TRANSACTION is not/],
    ['PRAGMA enable_verification', /PRAGMA is not/],
    ['CALL pragma_version()', /CALL is not/],
    ['PREPARE one AS SELECT 1; EXECUTE one', /PREPARE is not/],
    ['USE main', /SET is not/],
    ['VACUUM', /VACUUM is not/],
    ['LOAD json', /LOAD is not/],
    ['EXPLAIN ANALYZE CREATE TEMP TABLE mine AS SELECT 1', /CREATE is not/],
    ['EXPLAIN (ANALYZE, FORMAT json) CREATE TEMP TABLE mine AS SELECT 1', /CREATE is not/],
    ['/* */ EXPLAIN ANALYZE CREATE TEMP TABLE mine AS SELECT 1', /EXPLAIN must be the first word/],
    ['EXPLAIN SELECT 1; EXPLAIN ANALYZE CREATE TEMP TABLE mine AS SELECT 1', /EXPLAIN must be/],
    ["FROM enable_logging(storage = 'stdout')", /enable_logging, which does more than read/],
    ["FROM query('FROM enable_logging()')", /uses query/],
    ['FROM system.main."Enable_Logging"()', /enable_logging/],
    ['EXPLAIN ANALYZE FROM enable_logging()', /enable_logging/],
    ["SELECT write_log('mine')", /write_log/],
    ['FROM checkpoint()', /checkpoint/],
    ["SELECT current_setting('temp_directory')", /uses current_setting/],
    ['FROM pragma_database_list()', /uses pragma_database_list/],
    ['FROM duckdb_databases()', /uses duckdb_databases/],
    ['FROM duckdb_settings()', /uses duckdb_settings/],
    ['FROM duckdb_extensions()', /uses duckdb_extensions/],
  ])('is refused: %s', async (sql, reason) => {
    expect(await refusal(sql)).toMatch(reason);
  });

  it.each([
    'FROM page_views',
    "SELECT path FROM page_views WHERE path LIKE '%enable_logging()%'",
    'WITH one AS (SELECT 1 AS a) FROM one; VALUES (1); TABLE page_views;',
    'DESCRIBE page_views',
    'DESCRIBE SELECT 1',
    'SHOW TABLES',
    'SUMMARIZE page_views',
    'PRAGMA table_info(page_views)',
    'EXPLAIN SELECT 1',
    'EXPLAIN ANALYZE FROM page_views',
    'explain (analyze, format json) FROM page_views',
    'PIVOT page_views ON project USING sum(total)',
    "PIVOT page_views ON project IN ('prj_1') USING sum(total)",
    'UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b',
    "FROM top_pages('2026-11-01', '2026-11-02')",
  ])('is answered: %s', async (sql) => {
    expect(await refusal(sql)).toBe('');
  });

  it('does not end the process with a log that must not be written', async () => {
    const before = await hashes();
    const sql = "CALL enable_logging('QueryLog', storage => 'file', storage_path => 'log'); SELECT 1";
    const tried = await runCli(['sql', sql], { cwd: workspace });
    expect(tried).toMatchObject({
      code: 1,
      signal: null,
      stderr: expect.stringContaining('enable_logging') as string,
    });
    expect(await hashes()).toEqual(before);
  });
});
