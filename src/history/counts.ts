import { BIGINT, DATE, type DuckDBAppender, DuckDBDataChunk, INTEGER } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import type { PageViews } from '../api/schema.js';
import { type Day, day, daysBetween } from '../day.js';

/** The most rows that a DuckDB chunk holds. */
const CHUNK_ROWS = 2048;

const COLUMNS = ['human', 'ai', 'total'] as const;

/** The rows of a day as numbers: the ids of the paths, and their counts. */
export interface DayCounts {
  readonly paths: Int32Array;
  readonly human: Float64Array;
  readonly ai: Float64Array;
  readonly total: Float64Array;
}

/** Turns the rows of a day into numbers. Throws a `RangeError` for a count that cannot be stored exactly. */
export function countsOf(rows: readonly PageViews[], idOf: (path: string) => number): DayCounts {
  const paths = new Int32Array(rows.length);
  const human = new Float64Array(rows.length);
  const ai = new Float64Array(rows.length);
  const total = new Float64Array(rows.length);
  rows.forEach((row, index) => {
    for (const name of COLUMNS)
      if (!Number.isSafeInteger(row[name]) || row[name] < 0)
        throw new RangeError(`${row[name]} is no count of views (${name} of ${row.path})`);
    paths[index] = idOf(row.path);
    human[index] = row.human;
    ai[index] = row.ai;
    total[index] = row.total;
  });
  return { paths, human, ai, total };
}

const EPOCH = day('1970-01-01');

/** Appends the rows of a day to `internal.counts`. */
export function appendCounts(appender: DuckDBAppender, projectId: number, on: Day, counts: DayCounts): void {
  const date = daysBetween(EPOCH, on);
  for (let from = 0; from < counts.paths.length; from += CHUNK_ROWS) {
    const paths = counts.paths.slice(from, from + CHUNK_ROWS);
    const chunk = DuckDBDataChunk.create([INTEGER, DATE, INTEGER, BIGINT, BIGINT, BIGINT], paths.length);
    const columns = [
      new Int32Array(paths.length).fill(projectId),
      new Int32Array(paths.length).fill(date),
      paths,
      ...COLUMNS.map((name) => wide(counts[name].subarray(from, from + CHUNK_ROWS))),
    ];
    columns.forEach((column, index) => {
      const vector = duckdb.data_chunk_get_vector(chunk.chunk, index);
      duckdb.copy_data_to_vector(vector, 0, column.buffer, 0, column.byteLength);
    });
    appender.appendDataChunk(chunk);
  }
}

/** Whole numbers below 2⁵³ as 64-bit integers on a little-endian machine, which are the only ones that DuckDB runs on. */
function wide(numbers: Float64Array): Uint32Array<ArrayBuffer> {
  const halves = new Uint32Array(2 * numbers.length);
  numbers.forEach((number, index) => {
    halves[2 * index] = number;
    halves[2 * index + 1] = number / 2 ** 32;
  });
  return halves;
}
