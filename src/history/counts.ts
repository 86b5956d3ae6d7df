import { BIGINT, DATE, type DuckDBAppender, DuckDBDataChunk, INTEGER } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { type Day, day, daysBetween } from '../day.js';
import { COUNTS, type DayCounts } from './day-counts.js';

/** The most rows that a DuckDB chunk holds. */
const CHUNK_ROWS = 2048;

const EPOCH = day('1970-01-01');

/** The rows of a day, with its project as a number. */
interface CountedDay {
  readonly projectId: number;
  readonly day: Day;
  readonly counts: DayCounts;
}

/** Appends the rows of days to `internal.counts`. */
export function appendCounts(appender: DuckDBAppender, days: Iterable<CountedDay>): void {
  // Only garbage collection gives back the memory of a chunk, so there is one.
  const chunk = DuckDBDataChunk.create([INTEGER, DATE, INTEGER, BIGINT, BIGINT, BIGINT]);
  for (const { projectId, day: on, counts } of days) {
    const date = daysBetween(EPOCH, on);
    for (let from = 0; from < counts.ids.length; from += CHUNK_ROWS) {
      const ids = counts.ids.slice(from, from + CHUNK_ROWS);
      chunk.reset();
      chunk.rowCount = ids.length;
      const columns = [
        new Int32Array(ids.length).fill(projectId),
        new Int32Array(ids.length).fill(date),
        ids,
        ...COUNTS.map((name) => wide(counts[name].subarray(from, from + CHUNK_ROWS))),
      ];
      columns.forEach((column, index) => {
        const vector = duckdb.data_chunk_get_vector(chunk.chunk, index);
        duckdb.copy_data_to_vector(vector, 0, column.buffer, 0, column.byteLength);
      });
      appender.appendDataChunk(chunk);
    }
  }
}

/** Whole numbers below 2⁵³ as 64-bit integers on a little-endian machine, which are the only ones that DuckDB runs on. */
function wide(numbers: Float64Array): Uint32Array<ArrayBuffer> {
  const halves = new Uint32Array(2 * numbers.length);
  for (let index = 0; index < numbers.length; index++) {
    const number = numbers[index] ?? 0;
    halves[2 * index] = number;
    if (number >= 2 ** 32) halves[2 * index + 1] = number / 2 ** 32;
  }
  return halves;
}
