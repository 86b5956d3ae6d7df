import {
  BIGINT,
  DATE,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  type DuckDBDateValue,
  type DuckDBType,
  type DuckDBValue,
  VARCHAR,
} from '@duckdb/node-api';
import duckdb, { type Vector } from '@duckdb/node-bindings';
import type { z } from 'zod';
import { type Parameters, queryRows, type Reader, runStatement } from './query.js';
import { CHUNK_ROWS, type Texts } from './texts.js';

/** A column to append: one value for all rows, or the value of each row. */
export type Column =
  | { readonly same: string | DuckDBDateValue }
  | { readonly texts: Texts; readonly numbers: Int32Array }
  | { readonly counts: Float64Array };

/** A value of a single row, and the type of its column. */
export type Cell = readonly [type: DuckDBType, value: DuckDBValue];

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
  async appendRow(table: string, cells: readonly Cell[]): Promise<void> {
    const appender = await this.#appenderOf(table);
    for (const [type, value] of cells) appender.appendValue(value, type);
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

const typeOf = (column: Column): DuckDBType =>
  'counts' in column ? BIGINT : 'same' in column && typeof column.same !== 'string' ? DATE : VARCHAR;

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
      ? doubleWords(column.counts.subarray(from, to))
      : column.texts.wordsOf(column.numbers.subarray(from, to));
  duckdb.copy_data_to_vector(vector, 0, words.buffer, 0, words.byteLength);
}

/** Counts as the two halves of DuckDB's BIGINT, the lower one first. */
function doubleWords(counts: Float64Array): Int32Array<ArrayBuffer> {
  const words = new Int32Array(2 * counts.length);
  let at = 0;
  for (const count of counts) {
    words[at++] = count;
    words[at++] = Math.floor(count / 2 ** 32);
  }
  return words;
}
