import { z } from 'zod';
import type { Shard } from '../config/shard.js';
import { identifier, literal } from './duckdb.js';
import { nameShard } from './lake/opened.js';
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
      await nameShard(connection, shard);
      const found = await queryRows(
        connection,
        TABLES.replace('{database}', identifier(database)),
        z.object({ name: z.string(), rows: z.string() }),
        { database, shard: shard.index },
      );
      for (const { name, rows } of found) tables.set(name, [...(tables.get(name) ?? []), rows]);
    }
    for (const [name, rows] of tables)
      await connection.run(`CREATE VIEW ${identifier(name)} AS ${rows.join('\nUNION ALL BY NAME\n')}`);
    const comments = await queryRows(connection, COMMENTS, z.object({ statement: z.string() }));
    await connection.run(comments.map(({ statement }) => statement).join(';'));
    await createViews(connection);
  });
