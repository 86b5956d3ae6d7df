import {
  DATE,
  DOUBLE,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  type DuckDBDateValue,
  type DuckDBType,
  VARCHAR,
} from '@duckdb/node-api';
import duckdb, { type Vector } from '@duckdb/node-bindings';
import type { z } from 'zod';
import { type Parameters, queryRows, type Reader, runStatement, toDuckDB } from './query.js';
import { CHUNK_ROWS, type Texts } from './texts.js';

/** A column to append: one value for all rows, or the value of each row. */
export type Column =
  | { readonly same: string | DuckDBDateValue }
  | { readonly texts: Texts; readonly numbers: Int32Array }
  | { readonly counts: Float64Array };

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
  async append(table: string, columns: readonly Column[], rows: number): Promise<void> {
    const appender = await this.#appenderOf(table);
    const types = columns.map(typeOf);
    for (let from = 0; from < rows; from += CHUNK_ROWS) {
      const to = Math.min(rows, from + CHUNK_ROWS);
      const chunk = DuckDBDataChunk.create(types, to - from);
      for (const [index, column] of columns.entries())
        setColumn(duckdb.data_chunk_get_vector(chunk.chunk, index), column, from, to);
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

/** The type of the values passed to DuckDB, which converts them to that of the table. */
const typeOf = (column: Column): DuckDBType =>
  'counts' in column ? DOUBLE : 'same' in column && typeof column.same !== 'string' ? DATE : VARCHAR;

/** Fills a vector with some rows of a column. */
function setColumn(vector: Vector, column: Column, from: number, to: number): void {
  if ('same' in column) {
    const { same } = column;
    const value = typeof same === 'string' ? duckdb.create_varchar(same) : duckdb.create_date(same);
    duckdb.vector_reference_value(vector, value);
    return;
  }
  const words =
    'counts' in column
      ? column.counts.slice(from, to)
      : column.texts.wordsOf(column.numbers.subarray(from, to));
  duckdb.copy_data_to_vector(vector, 0, words.buffer, 0, words.byteLength);
}
