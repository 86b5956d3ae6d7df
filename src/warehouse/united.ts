import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { type Shard, shardOf } from '../config/shard.js';
import { identifier, openSafely, quoted } from './duckdb.js';
import { createViews } from './migrate.js';
import { History } from './published.js';
import { queryRows, readSql } from './query.js';

const COMMENTS = readSql(import.meta.url, 'statements/comments-of-tables.sql');

/** The history of one shard. */
export interface Part {
  readonly shard: Shard;
  readonly file: string;
}

/** Job 17 of shard 3 is job 3000017 of the union, because each shard numbers its own jobs and messages. */
const NUMBERED: Readonly<Record<string, readonly string[]>> = {
  agent_jobs: ['id'],
  agent_messages: ['id', 'job'],
  experiment_pairs: ['job_id'],
  job_transitions: ['job', 'message'],
  pull_requests: ['job'],
};
const NUMBERS_OF_ONE = 1_000_000;

/**
 * Opens several shards' histories, of this version, as one: its tables are views over theirs, under the usual views and
 * macros. Read only; see `openHistory`.
 */
export async function openUnited(
  parts: readonly Part[],
  writable?: string,
  limits?: Readonly<Record<string, string>>,
): Promise<History> {
  const instance = await openSafely(':memory:', writable, limits, (connection) => unite(connection, parts));
  const connection = await instance.connect();
  const files = parts.map(({ file }) => file).join(', ');
  return new History(files, instance, connection, () => {
    connection.closeSync();
    instance.closeSync();
  });
}

async function unite(connection: DuckDBConnection, parts: readonly Part[]): Promise<void> {
  const selects = new Map<string, string[]>();
  for (const { shard, file } of parts) {
    const database = identifier(`shard ${shard.index}`);
    await connection.run(`ATTACH ${quoted(file)} AS ${database} (READ_ONLY)`);
    const tables = await tablesOf(connection, `shard ${shard.index}`);
    const strangers = await strangersIn(connection, database, tables, shard);
    for (const { name, has_project: hasProject } of tables) {
      const numbered = (NUMBERED[name] ?? []).map(
        (column) => `${column} + ${shard.index * NUMBERS_OF_ONE} AS ${column}`,
      );
      const replaced = numbered.length === 0 ? '' : ` REPLACE (${numbered.join(', ')})`;
      const isOwn = hasProject && strangers !== '' ? ` WHERE project NOT IN (${strangers})` : '';
      const select = `SELECT *${replaced} FROM ${database}.${identifier(name)}${isOwn}`;
      selects.set(name, [...(selects.get(name) ?? []), select]);
    }
  }
  const views = [...selects].map(
    ([name, each]) => `CREATE VIEW ${identifier(name)} AS ${each.join('\nUNION ALL BY NAME\n')};`,
  );
  await connection.run(views.join('\n'));
  const comments = await queryRows(connection, COMMENTS, z.object({ statement: z.string() }));
  await connection.run(comments.map(({ statement }) => statement).join(';'));
  await createViews(connection);
}

const tableRow = z.object({ name: z.string(), has_project: z.boolean() });
type Table = z.infer<typeof tableRow>;

const tablesOf = (connection: DuckDBConnection, database: string): Promise<Table[]> =>
  queryRows(
    connection,
    `SELECT table_name AS name, bool_or(column_name = 'project') AS has_project
     FROM duckdb_columns() SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)
     WHERE database_name = $database AND schema_name = 'main' AND table_name NOT IN ('schema_version', 'workspace')
     GROUP BY table_name ORDER BY table_name`,
    tableRow,
    { database },
  );

/** The projects of other shards, as SQL: a copy that a shard began with has them, as old as it is. */
async function strangersIn(
  connection: DuckDBConnection,
  database: string,
  tables: readonly Table[],
  { index, count }: Shard,
): Promise<string> {
  const ledgers = tables.filter(({ name, has_project }) => has_project && name !== 'page_views');
  const projects = await queryRows(
    connection,
    ledgers.map(({ name }) => `SELECT project FROM ${database}.${identifier(name)}`).join('\nUNION\n'),
    z.object({ project: z.string() }),
  );
  return projects
    .filter(({ project }) => shardOf(project, count) !== index)
    .map(({ project }) => quoted(project))
    .join(', ');
}
