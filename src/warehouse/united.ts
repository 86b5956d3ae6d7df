import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { type Shard, shardOf } from '../config/shard.js';
import { identifier, literal } from './duckdb.js';
import { createViews } from './migrate.js';
import { type Access, History } from './published.js';
import { queryRows, readSql } from './query.js';

const TABLES = readSql(import.meta.url, 'statements/tables-of-shard.sql');
const COMMENTS = readSql(import.meta.url, 'statements/comments-of-tables.sql');

/** The history of one shard. */
export interface Part {
  readonly shard: Shard;
  readonly file: string;
}

/**
 * Opens several shards' histories, of this version, as one: its tables are views over theirs, under the usual views and
 * macros. Read only; see `History.open`.
 */
export const openUnited = (parts: readonly Part[], rights: Access): Promise<History> =>
  History.open(':memory:', rights, async (connection) => {
    const tables = new Map<string, string[]>();
    for (const { shard, file } of parts) {
      const database = `shard ${shard.index}`;
      await connection.run(`ATTACH ${literal(file)} AS ${identifier(database)} (READ_ONLY)`);
      const strangers = await strangersIn(connection, database, shard);
      const values = { database, shard: shard.index, strangers };
      const found = await queryRows(
        connection,
        TABLES,
        z.object({ name: z.string(), rows: z.string() }),
        values,
      );
      for (const { name, rows } of found) tables.set(name, [...(tables.get(name) ?? []), rows]);
    }
    for (const [name, rows] of tables)
      await connection.run(`CREATE VIEW ${identifier(name)} AS ${rows.join('\nUNION ALL BY NAME\n')}`);
    const comments = await queryRows(connection, COMMENTS, z.object({ statement: z.string() }));
    await connection.run(comments.map(({ statement }) => statement).join(';'));
    await createViews(connection);
  });

/** The projects of other shards, as SQL. */
async function strangersIn(connection: DuckDBConnection, database: string, shard: Shard): Promise<string> {
  const projects = await queryRows(
    connection,
    `SELECT DISTINCT project FROM ${identifier(database)}.day_loads`,
    z.object({ project: z.string() }),
  );
  const others = projects.filter(({ project }) => shardOf(project, shard.count) !== shard.index);
  return others.map(({ project }) => literal(project)).join(', ');
}
