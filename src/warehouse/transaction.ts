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
import duckdb from '@duckdb/node-bindings';
import type { z } from 'zod';
import { type Parameters, queryRows, type Reader, runStatement } from './query.js';

/** The most rows that a DuckDB vector holds. */
const CHUNK_ROWS = 2048;

/** A column of rows to append: one value for all of them, or a function that returns a row's value. */
export type Column<Row> =
  | { readonly same: string | DuckDBDateValue }
  | { readonly text: (row: Row) => string }
  | { readonly count: (row: Row) => number };

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
  async append<Row>(table: string, columns: readonly Column<Row>[], rows: readonly Row[]): Promise<void> {
    const appender = await this.#appenderOf(table);
    const types = columns.map(typeOf);
    for (let start = 0; start < rows.length; start += CHUNK_ROWS) {
      const part = rows.slice(start, start + CHUNK_ROWS);
      const chunk = DuckDBDataChunk.create(types, part.length);
      for (const [index, column] of columns.entries()) setColumn(chunk, index, column, part);
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

const typeOf = (column: Column<never>): DuckDBType =>
  'count' in column ? BIGINT : 'same' in column && typeof column.same !== 'string' ? DATE : VARCHAR;

/** Fills a column of a chunk. Constant columns and numbers are passed as a whole. */
function setColumn<Row>(chunk: DuckDBDataChunk, index: number, column: Column<Row>, rows: readonly Row[]) {
  const vector = duckdb.data_chunk_get_vector(chunk.chunk, index);
  if ('text' in column) {
    for (const [place, row] of rows.entries())
      duckdb.vector_assign_string_element(vector, place, column.text(row));
    return;
  }
  if ('same' in column) {
    const { same } = column;
    const value = typeof same === 'string' ? duckdb.create_varchar(same) : duckdb.create_date(same);
    duckdb.vector_reference_value(vector, value);
    return;
  }
  const halves = new Int32Array(2 * rows.length);
  let at = 0;
  for (const row of rows) {
    const count = column.count(row);
    halves[at++] = count;
    halves[at++] = Math.floor(count / 2 ** 32);
  }
  duckdb.copy_data_to_vector(vector, 0, halves.buffer, 0, halves.byteLength);
}
