import { DuckDBDataChunk, type DuckDBType, type DuckDBValue } from '@duckdb/node-api';
import type { Transaction } from './warehouse.js';

/** The most rows that a DuckDB vector holds. */
const CHUNK_ROWS = 2048;

/** A column of a table, and where its value in a row comes from. */
export interface Column<Row> {
  readonly type: DuckDBType;
  readonly value: (row: Row) => DuckDBValue;
}

/**
 * Appends rows to a table column by column: the fastest way in. `columns` are all of the table's, in its own order.
 * When it throws, nothing is left behind that closing the appender could still write, so the transaction can be
 * rolled back.
 */
export async function appendRows<Row>(
  transaction: Transaction,
  table: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): Promise<void> {
  const types = columns.map((column) => column.type);
  const appender = await transaction.connection.createAppender(table);
  try {
    for (let start = 0; start < rows.length; start += CHUNK_ROWS) {
      const part = rows.slice(start, start + CHUNK_ROWS);
      const chunk = DuckDBDataChunk.create(types, part.length);
      chunk.setColumns(columns.map(({ value }) => part.map(value)));
      appender.appendDataChunk(chunk);
    }
    appender.flushSync();
  } catch (error) {
    appender.clear();
    throw error;
  } finally {
    appender.closeSync();
  }
}
