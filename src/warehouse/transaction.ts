import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api';
import duckdb, { type Value } from '@duckdb/node-bindings';
import type { z } from 'zod';
import { type Parameters, queryRows, type Reader, runStatement, toDuckDB } from './query.js';

/** The most rows that a DuckDB chunk holds. */
const CHUNK_ROWS = 2048;

/** A column to append: the value of each row, or one for all. DuckDB converts its type to that of the table. */
export type AppendedColumn =
  | { readonly type: DuckDBType; readonly values: readonly DuckDBValue[] }
  | { readonly type: DuckDBType; readonly same: Value };

/** A running transaction: see `Warehouse.transaction`. */
export class Transaction implements Reader {
  readonly #appenders = new Map<string, DuckDBAppender>();

  constructor(readonly connection: DuckDBConnection) {}

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    this.flush();
    return queryRows(this.connection, sql, row, parameters);
  }

  /** Runs a statement without returning rows. */
  async execute(sql: string, parameters: Parameters = {}): Promise<void> {
    this.flush();
    await runStatement(this.connection, sql, parameters);
  }

  /** Appends one row: the values of all columns of the table, in its own order. */
  async appendRow(table: string, values: readonly Parameters[string][]): Promise<void> {
    const appender = await this.#appenderOf(table);
    for (const value of values) appender.appendValue(toDuckDB(value));
    appender.endRow();
  }

  /** Appends rows column by column, which is fastest. `columns` are all columns of the table, in its order. */
  async append(table: string, rows: number, columns: readonly AppendedColumn[]): Promise<void> {
    const appender = await this.#appenderOf(table);
    const types = columns.map(({ type }) => type);
    for (let from = 0; from < rows; from += CHUNK_ROWS) {
      const to = Math.min(rows, from + CHUNK_ROWS);
      const chunk = DuckDBDataChunk.create(types, to - from);
      for (const [index, column] of columns.entries())
        if ('same' in column) {
          const vector = duckdb.data_chunk_get_vector(chunk.chunk, index);
          duckdb.vector_reference_value(vector, column.same);
        } else chunk.setColumnValues(index, column.values.slice(from, to));
      appender.appendDataChunk(chunk);
    }
  }

  /** Passes the appended rows to DuckDB; until then, they are in no table. */
  flush(): void {
    for (const appender of this.#appenders.values()) appender.flushSync();
    this.#close();
  }

  /** Drops the appended rows, which closing would otherwise write. */
  discard(): void {
    for (const appender of this.#appenders.values()) appender.clear();
    this.#close();
  }

  #close(): void {
    for (const appender of this.#appenders.values()) appender.closeSync();
    this.#appenders.clear();
  }

  async #appenderOf(table: string): Promise<DuckDBAppender> {
    const open = this.#appenders.get(table);
    if (open !== undefined) return open;
    const appender = await this.connection.createAppender(table);
    this.#appenders.set(table, appender);
    return appender;
  }
}
