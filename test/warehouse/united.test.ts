import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { shardOf } from '../../src/config/shard.js';
import { runSql } from '../../src/sql/answer.js';
import { readDictionary } from '../../src/sql/dictionary.js';
import { copyOfLake } from '../../src/warehouse/lake/copy.js';
import { openOwnHistory } from '../../src/warehouse/published.js';
import { openUnited, type Part } from '../../src/warehouse/united.js';
import { afterFile } from '../cleanup.js';
import { answerOf } from '../duckdb.js';
import { newDatabase } from '../new-database.js';
import { rowsOf } from '../open-warehouse.js';
import { tempDir } from '../temp-dir.js';

const COUNT = 2;
const PROJECTS = ['prj_a', 'prj_b', 'prj_c', 'prj_d'];

/** Each shard has all projects, as after a split; in a project of another shard, views are old. */
async function partsAfterSplit(): Promise<Part[]> {
  const directory = await tempDir();
  const parts = [1, 2].map((index) => ({
    shard: { index, count: COUNT },
    file: join(directory, `shard-${index}.duckdb`),
  }));
  for (const { shard, file } of parts) {
    await newDatabase(file);
    for (const [number, project] of PROJECTS.entries()) {
      const human = shardOf(project, COUNT) === shard.index ? 10 + number : 1;
      await answerOf(
        file,
        `INSERT INTO page_views SELECT '${project}', day::DATE, '/page', ${human}, 1, ${human} + 1
         FROM range(DATE '2026-11-02', DATE '2026-11-16', INTERVAL 1 DAY) AS days(day)`,
        `INSERT INTO day_loads BY NAME SELECT project, day, 'final' AS state, day AS attempted_at, day AS loaded_at,
           human, ai, total, 1 AS pages FROM page_views WHERE project = '${project}'`,
        `INSERT INTO agent_jobs BY NAME SELECT ${number} + 1 AS id, '${project}' AS project, '/page' AS path, 'completed' AS state,
           '' AS reason, '' AS prompt, TIMESTAMP '2026-11-05' AS planned_at, 0 AS polls, DATE '2026-11-09' AS merged_on`,
        `INSERT INTO agent_messages BY NAME SELECT ${number} + 1 AS id, ${number} + 1 AS job, 'sent' AS state, 'typed' AS origin,
           '' AS prompt, TIMESTAMP '2026-11-05' AS planned_at`,
      );
    }
  }
  return parts;
}

it('several shards are read as one: each project from its own, with jobs that keep their numbers apart', async () => {
  const parts = await partsAfterSplit();
  const [one] = parts;
  const own = await openOwnHistory(one?.file ?? '');
  const words = await readDictionary(own);
  own.close();
  const history = await openUnited(parts, {});
  afterFile(() => {
    history.close();
  });
  /** The same query finds a row for each project. */
  const expectEach = async (sql: string, row: (project: string, number: number) => object) => {
    expect(await rowsOf(history, `${sql} ORDER BY project`)).toEqual(
      PROJECTS.map((project, number) => ({ project, ...row(project, number) })),
    );
  };
  const sums = 'SELECT project, sum(human) AS human, count(*) AS days FROM page_views GROUP BY ALL';
  await expectEach(sums, (_, number) => ({ human: 14 * (10 + number), days: 14 }));
  await expectEach(
    "SELECT project, human, human_before, days_loaded, days_before FROM changes('2026-11-09', '2026-11-15', per := 'site')",
    (_, number) => ({
      ...{ human: 7 * (10 + number), human_before: 7 * (10 + number) },
      ...{ days_loaded: 7, days_before: 7 },
    }),
  );
  const jobOf = (project: string, number: number) => ({
    job: shardOf(project, COUNT) * 1_000_000 + number + 1,
  });
  await expectEach('SELECT id AS job, project FROM jobs', jobOf);
  const messages = 'FROM agent_messages JOIN agent_jobs ON job = agent_jobs.id';
  await expectEach(`SELECT job, project ${messages} WHERE agent_messages.id = job`, jobOf);

  // The same names and comments, and as safe as one file.
  expect((await readDictionary(history)).map(({ name, comment }) => [name, comment]).sort()).toEqual(
    words.map(({ name, comment }) => [name, comment]).sort(),
  );
  for (const sql of [
    'CREATE TABLE own AS SELECT 1',
    "ATTACH 'x' AS x",
    'DELETE FROM "shard 1".page_views',
    "COPY page_views TO 'x.csv'",
  ])
    await expect(runSql(history.connection, sql)).rejects.toThrow(
      /not a read-only statement|disabled by configuration/,
    );
  await expect(rowsOf(history, "FROM read_text('/etc/hostname')")).rejects.toThrow(
    'disabled by configuration',
  );
});

it('a lake in a bucket is not read without credentials: the last copy is, and its age is told', async () => {
  const directory = await tempDir();
  const place = { location: 's3://bucket/lake', credentials: {}, keepReplacedMs: 0 };
  const source = { place, shard: { index: 2, count: COUNT }, signal: new AbortController().signal };
  const stale: string[] = [];
  const copy = () => copyOfLake(directory, source, false, (words) => stale.push(words));
  await expect(copy()).rejects.toThrow(
    'reads no credentials for s3://bucket/lake. Copy it with: readership status',
  );
  const last = join(directory, 'lake-copy-0123456789abcdef.duckdb');
  await newDatabase(last);
  await utimes(last, new Date('2026-11-18T05:00:00Z'), new Date('2026-11-18T05:00:00Z'));
  expect(await copy()).toBe(last);
  expect(stale).toEqual([
    expect.stringMatching(/is as of Nov 18, 2026 at 05:00 UTC, and could not be brought up to date: /),
  ]);
});
