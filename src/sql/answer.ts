import {
  type DuckDBConnection,
  type Json,
  type DuckDBValueConverter,
  JsonDuckDBValueConverter,
  type DuckDBResult,
  ResultReturnType,
} from '@duckdb/node-api';
import { standingOf } from './standing.js';

/** A column of an answer. Values of numeric ones stand at the right. */
export interface AnswerColumn {
  readonly name: string;
  readonly isNumeric: boolean;
  /** Whether its values can be long, so that cutting them short loses least. */
  readonly isText: boolean;
}

/** The answer to a query, read as it is written out: only a batch of rows is held at a time. */
export interface Answer {
  readonly columns: readonly AnswerColumn[];
  readonly batches: AsyncIterable<readonly (readonly Json[])[]>;
  /** Statements before it that had answers of their own, which nobody sees. */
  readonly unseen: number;
}

const NUMERIC = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)/;

const TEXT = /^(VARCHAR|STRUCT|MAP|JSON)|\[\]$/;

/**
 * Runs SQL, several statements if need be, and hands on the answer of the last one; undefined when there is no
 * statement in it. Throws the database's own error, which points at the place.
 */
export async function ask(connection: DuckDBConnection, sql: string): Promise<Answer | undefined> {
  // The library fails on a text without a statement.
  if (standingOf(sql) === 'blank') return undefined;
  const statements = await connection.extractStatements(sql);
  let unseen = 0;
  for (let index = 0; index < statements.count - 1; index++) {
    const { returnType } = await (await statements.prepare(index)).run();
    if (returnType === ResultReturnType.QUERY_RESULT) unseen += 1;
  }
  const last = await statements.prepare(statements.count - 1);
  return answerOf(await last.stream(), unseen);
}

const answerOf = (result: DuckDBResult, unseen: number): Answer => ({
  unseen,
  columns: result.deduplicatedColumnNames().map((name, index) => {
    const type = result.columnType(index).toString();
    return { name, isNumeric: NUMERIC.test(type), isText: TEXT.test(type) };
  }),
  batches: batchesOf(result),
});

async function* batchesOf(result: DuckDBResult): AsyncGenerator<Json[][]> {
  for (;;) {
    const chunk = await result.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) return;
    yield chunk.convertRows(toJson);
  }
}

/** As the library's own, but whole numbers that can be held exactly stay numbers, within lists and structs too. */
const toJson: DuckDBValueConverter<Json> = (value, type, converter) =>
  typeof value === 'bigint' && Number.isSafeInteger(Number(value))
    ? Number(value)
    : JsonDuckDBValueConverter(value, type, converter);
