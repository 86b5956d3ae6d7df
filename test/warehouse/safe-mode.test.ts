import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ask } from '../../src/sql/answer.js';
import { openHistory } from '../../src/warehouse/history.js';
import { publish } from '../../src/warehouse/publish.js';
import { closeNow, liveWarehouse } from '../open-warehouse.js';
import { runCli } from '../run-cli.js';
import { serve } from '../serve.js';
import { tempDir } from '../temp-dir.js';

/** What is within reach of a query that nothing holds back. */
interface Surroundings {
  /** Holds `history.duckdb`, `other.duckdb`, `secret.csv` and `secret.json`. */
  readonly directory: string;
  /** A web server. */
  readonly web: string;
}

type Attempts = readonly (readonly [what: string, sql: (at: Surroundings) => string])[];

/** The reason matters: what is refused for a misspelling is not held back. */
const REFUSED: readonly (readonly [kind: string, reason: RegExp, attempts: Attempts])[] = [
  [
    'writes',
    /attached in read-only mode/,
    [
      ['insert a row', () => "INSERT INTO page_views VALUES ('p', '2026-01-01', '/', 1, 0, 1)"],
      ['insert a row behind a WITH', () => 'WITH one AS (SELECT 1) INSERT INTO schema_version FROM one'],
      ['change rows', () => 'UPDATE page_views SET human = 0'],
      ['delete rows', () => 'DELETE FROM page_views'],
      ['delete all rows', () => 'TRUNCATE deliveries'],
      [
        'merge rows',
        () =>
          "MERGE INTO history_starts USING (SELECT 'p' AS project) AS mine USING (project) WHEN MATCHED THEN DELETE",
      ],
      ['delete in a transaction', () => 'BEGIN; DELETE FROM agent_jobs; COMMIT'],
      ['delete by a prepared statement', () => 'PREPARE wipe AS DELETE FROM page_views; EXECUTE wipe'],
      ['delete while explaining', () => 'EXPLAIN ANALYZE DELETE FROM page_views'],
      ['drop a table', () => 'DROP TABLE page_views'],
      ['drop a view', () => 'DROP VIEW site_days'],
      ['add a column', () => 'ALTER TABLE page_views ADD COLUMN mine INTEGER'],
      ['rename a table', () => 'ALTER TABLE page_views RENAME TO mine'],
      ['make a table', () => 'CREATE TABLE mine AS SELECT 1'],
      ['make an index', () => 'CREATE INDEX mine ON page_views (path)'],
      ['put another macro in place', () => 'CREATE OR REPLACE MACRO movers(week) AS TABLE SELECT 1'],
      ['say something else of a table', () => "COMMENT ON TABLE page_views IS 'mine'"],
    ],
  ],
  [
    'files',
    /file system operations are disabled/,
    [
      ['write CSV', ({ directory }) => `COPY page_views TO '${directory}/out.csv'`],
      ['write Parquet', ({ directory }) => `COPY (SELECT 1) TO '${directory}/out.parquet' (FORMAT parquet)`],
      ['write folders', ({ directory }) => `COPY page_views TO '${directory}/out' (PARTITION_BY (project))`],
      [
        'write over the history itself',
        ({ directory }) => `COPY (SELECT 1) TO '${directory}/history.duckdb'`,
      ],
      ['write to the terminal behind our back', () => "COPY (SELECT 1) TO '/dev/stderr'"],
      ['write a whole database', ({ directory }) => `EXPORT DATABASE '${directory}/out'`],
      ['load a file into a table', ({ directory }) => `COPY page_views FROM '${directory}/secret.csv'`],
      ['load a whole database', ({ directory }) => `IMPORT DATABASE '${directory}'`],
      ['read CSV', ({ directory }) => `FROM read_csv('${directory}/secret.csv')`],
      ['read JSON', ({ directory }) => `FROM read_json('${directory}/secret.json')`],
      ['read Parquet', ({ directory }) => `FROM read_parquet('${directory}/secret.parquet')`],
      ['read text', ({ directory }) => `FROM read_text('${directory}/secret.csv')`],
      ['read bytes', ({ directory }) => `FROM read_blob('${directory}/secret.csv')`],
      ['read the environment', () => "FROM read_text('/proc/self/environ')"],
      ['read a file by its name', ({ directory }) => `FROM '${directory}/secret.csv'`],
      ['read files by a pattern', ({ directory }) => `FROM '${directory}/*.csv'`],
      ['read a file through a macro', ({ directory }) => `FROM query_table('${directory}/secret.csv')`],
      ['list files', ({ directory }) => `FROM glob('${directory}/*')`],
      ['guess at a file', ({ directory }) => `FROM sniff_csv('${directory}/secret.csv')`],
      ['attach a database', ({ directory }) => `ATTACH '${directory}/other.duckdb' AS other (READ_ONLY)`],
      ['attach a new database', ({ directory }) => `ATTACH '${directory}/new.duckdb' AS new`],
      ['keep a secret', () => "CREATE SECRET (TYPE s3, KEY_ID 'x', SECRET 'y')"],
      ['see secrets', () => 'FROM duckdb_secrets()'],
    ],
  ],
  [
    'the network',
    /file system operations are disabled|requires the extension httpfs/,
    [
      ['read over HTTP', ({ web }) => `FROM read_csv('${web}/x.csv')`],
      ['read over HTTP by name', ({ web }) => `FROM '${web}/x.parquet'`],
      ['read from a bucket', () => "FROM read_parquet('s3://bucket/x.parquet')"],
      ['attach over HTTP', ({ web }) => `ATTACH '${web}/x.duckdb' AS other`],
      ['write over HTTP', ({ web }) => `COPY page_views TO '${web}/out.csv'`],
    ],
  ],
  [
    'extensions',
    /extensions is disabled|file system operations are disabled/,
    [
      ['install one', () => 'INSTALL httpfs'],
      ['install one from elsewhere', ({ web }) => `INSTALL httpfs FROM '${web}'`],
      ['load one', () => 'LOAD httpfs'],
      ['load a file as one', ({ directory }) => `LOAD '${directory}/mine.duckdb_extension'`],
      ['attach what needs one', ({ directory }) => `ATTACH '${directory}/x.sqlite' AS other (TYPE sqlite)`],
    ],
  ],
  [
    'settings',
    /the configuration has been locked/,
    [
      ['allow access again', () => 'SET enable_external_access = true'],
      ['reset access', () => 'RESET enable_external_access'],
      ['unlock the configuration', () => 'SET lock_configuration = false'],
      ['allow a directory', () => "SET allowed_directories = ['/']"],
      ['allow a file', ({ directory }) => `SET allowed_paths = ['${directory}/secret.csv']`],
      ['open for writing', () => "SET access_mode = 'READ_WRITE'"],
      ['load extensions by themselves', () => 'SET autoload_known_extensions = true'],
      ['spill elsewhere', ({ directory }) => `SET temp_directory = '${directory}'`],
      ['write profiles', ({ directory }) => `PRAGMA profiling_output = '${directory}/profile.json'`],
      ['take more memory', () => "SET memory_limit = '1TB'"],
    ],
  ],
];

describe('a query of the published history, in the mode of readership sql', () => {
  let workspace: string;
  let at: Surroundings;
  let asked: () => number;
  const file = () => join(at.directory, 'history.duckdb');

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
    const warehouse = await liveWarehouse();
    await warehouse.transaction((transaction) =>
      transaction.execute("INSERT INTO page_views VALUES ('prj_1', '2026-11-01', '/a', 1, 0, 1)"),
    );
    for (const name of ['history', 'other']) await publish(warehouse, join(directory, `${name}.duckdb`));
    await closeNow(warehouse);
    await writeFile(join(directory, 'secret.csv'), 'a,b\n1,2\n');
    await writeFile(join(directory, 'secret.json'), '{"a": 1}');
  });

  const answer = async (sql: string): Promise<unknown[]> => {
    const history = await openHistory(file());
    const rows: unknown[] = [];
    try {
      for await (const batch of (await ask(history.connection, sql))?.batches ?? []) rows.push(...batch);
      return rows;
    } finally {
      history.close();
    }
  };
  const hashes = async () => {
    const names = (await readdir(at.directory)).sort();
    const contents = await Promise.all(names.map((name) => readFile(join(at.directory, name))));
    return contents.map((bytes, index) => [names[index], createHash('sha256').update(bytes).digest('hex')]);
  };

  it.each(REFUSED)(
    'can do nothing about %s, and leaves every file as it was',
    async (_, reason, attempts) => {
      const before = await hashes();
      for (const [what, sql] of attempts) await expect(answer(sql(at)), what).rejects.toThrow(reason);
      expect(await answer('SELECT path FROM page_views')).toEqual([['/a']]);
      expect(await hashes()).toEqual(before);
      expect(asked()).toBe(0);
    },
  );

  it('cannot write a log either: DuckDB 1.5 ends the process that tries', async () => {
    const before = await hashes();
    const log = `CALL enable_logging('QueryLog', storage => 'file', storage_path => '${at.directory}/log'); SELECT 1`;
    const tried = await runCli(['sql', log], { cwd: workspace });
    expect(tried.code).not.toBe(0);
    expect(tried.stderr).toContain('file system operations are disabled');
    expect(await hashes()).toEqual(before);
  });

  it('was tried in more than 40 ways', () => {
    expect(REFUSED.flatMap(([, , attempts]) => attempts).length).toBeGreaterThan(40);
  });
});
