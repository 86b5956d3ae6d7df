import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import type { Day } from '../day.js';
import { literal } from './duckdb.js';
import { dayColumn, readSql } from '../columns.js';
import { queryRows, runStatement } from './query.js';

const QUARTERS = readSql(import.meta.url, 'statements/quarters.sql');
const COPY_QUARTER = readSql(import.meta.url, 'statements/copy-quarter.sql');

/** In smaller files, the order of rows does not matter. */
const MIN_ROWS = 2_000_000;

/** Rows that are inserted before they are written to the file, so that they do not fill the memory. */
const PART_ROWS = 500_000;

const sizeRow = z.object({ rows: z.int(), last: dayColumn.nullable() });
const BLOCKS =
  'SELECT free_blocks, used_blocks FROM pragma_database_size() WHERE database_name = current_database()';
const blocksRow = z.object({ free_blocks: z.int(), used_blocks: z.int() });

/**
 * Whether the next version of the history on this connection is to be written with all rows sorted: with the first load of
 * a quarter, if it is large, and if more of the file is free than used.
 */
export async function isToRewrite(connection: DuckDBConnection, loaded: readonly Day[]): Promise<boolean> {
  const [blocks] = await queryRows(connection, BLOCKS, blocksRow);
  if (blocks !== undefined && blocks.free_blocks > blocks.used_blocks) return true;
  const sql = 'SELECT coalesce(sum(pages), 0)::BIGINT AS rows, max(day) AS last FROM days';
  const [size] = await queryRows(connection, sql, sizeRow);
  if (size === undefined || size.last === null || size.rows < MIN_ROWS) return false;
  const known = quarterOf(size.last);
  return loaded.some((day) => quarterOf(day) > known);
}

/** A name of a quarter, in the order of time. */
const quarterOf = (day: Day): string => `${day.slice(0, 4)}-${Math.ceil(Number(day.slice(5, 7)) / 3)}`;

/** Copies the rows of the history at `path` into the empty current database: those of each quarter by path. */
export async function copySorted(connection: DuckDBConnection, path: string): Promise<void> {
  await connection.run(`ATTACH ${literal(path)} AS last (READ_ONLY)`);
  try {
    for (const table of ['internal.projects', 'internal.paths', 'main.days', 'main.restatements'])
      await connection.run(`INSERT INTO ${table} FROM last.${table}`);
    const row = z.object({ project_id: z.int(), first: dayColumn, rows: z.int() });
    let unwritten = 0;
    for (const { rows, ...quarter } of await queryRows(connection, QUARTERS, row)) {
      await runStatement(connection, COPY_QUARTER, quarter);
      unwritten += rows;
      if (unwritten < PART_ROWS) continue;
      await connection.run('CHECKPOINT');
      unwritten = 0;
    }
  } finally {
    await connection.run('DETACH last');
  }
}
