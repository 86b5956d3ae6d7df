import {
  type DuckDBConnection,
  DuckDBDateValue,
  type DuckDBPreparedStatement,
  type DuckDBResult,
  type DuckDBValueConverter,
  type Json,
  JsonDuckDBValueConverter,
  ResultReturnType,
  StatementType,
} from '@duckdb/node-api';
import { z } from 'zod';
import { StorageError } from '../errors.js';

/** A column of a result. Numeric values are right-aligned. */
export interface AnswerColumn {
  readonly name: string;
  readonly isNumeric: boolean;
  /** Whether its values can be long, so they are the first to be cut. */
  readonly isText: boolean;
}

/** A query result, streamed: only one batch of rows is in memory at a time. */
export interface Answer {
  readonly columns: readonly AnswerColumn[];
  readonly batches: AsyncIterable<readonly (readonly Json[])[]>;
  /** Number of earlier statements whose results are not shown. */
  readonly unseen: number;
}

const NUMERIC = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)/;
const TEXT = /^(VARCHAR|STRUCT|MAP|JSON)|\[\]$/;

/** Tables of the state are there as stored with the history, and as they are now. */
const SHOW_TABLES = /^\s*show\s+tables\s*;?\s*$/i;
const EACH_TABLE_ONCE = 'SELECT DISTINCT name FROM (SHOW TABLES) ORDER BY name';

/**
 * Runs one or more SQL statements that only read, and returns the result of the last one; undefined
 * if there is no statement. Throws a `StorageError` for a statement that does anything else, and
 * the database's own error, which points at the position, for one that fails.
 */
export async function runSql(connection: DuckDBConnection, given: string): Promise<Answer | undefined> {
  const sql = SHOW_TABLES.test(given) ? EACH_TABLE_ONCE : given;
  // DuckDB's client fails on text without a statement.
  if ((await completenessOf(connection, sql)) === 'blank') return undefined;
  await expectOnlyData(connection, sql);
  const statements = await connection.extractStatements(sql);
  let unseen = 0;
  for (let index = 0; ; index++) {
    const statement = await statements.prepare(index);
    await expectReading(connection, statement.statementType, sql);
    if (index === statements.count - 1) return answerOf(connection, statement, unseen);
    const { returnType } = await statement.run();
    if (returnType === ResultReturnType.QUERY_RESULT) unseen += 1;
  }
}

/** Throws as `runSql` does, unless there is exactly one statement and it only reads. */
export async function expectOneSelect(connection: DuckDBConnection, sql: string): Promise<void> {
  await expectOnlyData(connection, sql);
  const statements = await connection.extractStatements(sql);
  if (statements.count > 1) throw new StorageError('The query failed. It must be a single statement.');
  await expectReading(connection, (await statements.prepare(0)).statementType, sql);
}

const parseSchema = z.object({
  error: z.boolean(),
  error_message: z.string().optional(),
  statements: z.array(z.unknown()).default([]),
});

/** The result of DuckDB's own parser, without running the SQL: trees of SELECT statements, or an error. */
async function parse(connection: DuckDBConnection, sql: string): Promise<z.infer<typeof parseSchema>> {
  const reader = await connection.runAndReadAll('SELECT json_serialize_sql($sql::VARCHAR)', { sql });
  // An infinite number, such as 1e400, is not JSON. In a text, its quotes would be escaped.
  const tree = z
    .string()
    .parse(reader.value(0, 0))
    .replaceAll(/"value":-?Infinity/g, '"value":null');
  return parseSchema.parse(JSON.parse(tree));
}

/**
 * How complete typed SQL is: `blank` has no statement; `complete` ends with a semicolon outside
 * strings and comments; `open` needs more.
 */
export async function completenessOf(
  connection: DuckDBConnection,
  sql: string,
): Promise<'blank' | 'open' | 'complete'> {
  const { error, error_message: message, statements } = await parse(connection, sql);
  if (!error && statements.length === 0) return 'blank';
  return /;\s*$/.test(sql) && message?.startsWith('unterminated') !== true ? 'complete' : 'open';
}

/**
 * Functions and views with side effects even in a SELECT, that run SQL from a string, or that show
 * where files of this machine are.
 */
const REFUSED = new RegExp(
  String.raw`\b(?:(?:en|dis)able_(?:logging|profil\w*|peg_parser)|write_log|truncate_duckdb_logs|(?:force_)?checkpoint|query(?:_table)?|json_execute_serialized_sql|(?:pragma_)?database_list|duckdb_(?:databases|settings|secrets|temporary_files|extensions)|current_setting)\b`,
  'i',
);

/**
 * `enable_logging`, for example, crashes the process at the next statement, because it cannot write
 * its log.
 */
async function expectOnlyData(connection: DuckDBConnection, sql: string): Promise<void> {
  const { error, statements } = await parse(connection, sql);
  // Only SELECT has a tree. In other statements (EXPLAIN, PIVOT) such a name is refused anywhere, even in
  // a string, because SQL has no other way to spell it.
  const refused = error ? REFUSED.exec(sql)?.[0] : namesIn(statements).find((name) => REFUSED.test(name));
  if (refused !== undefined)
    throw new StorageError(`The query failed. It uses ${refused}, which does more than read the history.`);
}

const namedSchema = z.object({ function_name: z.string() }).or(z.object({ table_name: z.string() }));

/** The functions and tables that a statement names. */
function namesIn(tree: unknown): string[] {
  if (typeof tree !== 'object' || tree === null) return [];
  const named = namedSchema.safeParse(tree);
  return [...(named.success ? Object.values(named.data) : []), ...Object.values(tree).flatMap(namesIn)];
}

const EXPLAIN = /^\s*explain\b(?:\s+analyze\b|\s*\([^)]*\))?/i;

/** EXPLAIN ANALYZE runs what follows it. PIVOT implicitly runs a CREATE of a temporary type. */
async function expectReading(connection: DuckDBConnection, type: StatementType, sql: string): Promise<void> {
  if (type === StatementType.SELECT) return;
  if (type === StatementType.CREATE && !/\bcreate\b/i.test(sql)) return;
  if (type === StatementType.EXPLAIN && EXPLAIN.test(sql)) {
    const explained = sql.replace(EXPLAIN, '');
    const statements = await connection.extractStatements(explained);
    for (let index = 0; index < statements.count; index++)
      await expectReading(connection, (await statements.prepare(index)).statementType, explained);
    return;
  }
  throw new StorageError(
    type === StatementType.EXPLAIN
      ? 'The query failed. EXPLAIN must be the first word of the only statement.'
      : `The query failed. ${StatementType[type]} is not a read-only statement: ` +
          'use SELECT, FROM, DESCRIBE, SHOW, SUMMARIZE, PIVOT or EXPLAIN.',
  );
}

/**
 * Streams a statement's result in a transaction. After an error, DuckDB's client returns no more rows, as
 * after the last one; only the transaction, which an error ends, tells the difference.
 */
async function answerOf(
  connection: DuckDBConnection,
  statement: DuckDBPreparedStatement,
  unseen: number,
): Promise<Answer> {
  await connection.run('BEGIN');
  const result = await statement.stream().catch(async (error: unknown) => {
    await connection.run('ROLLBACK');
    throw error;
  });
  const columns = result.deduplicatedColumnNames().map((name, index) => {
    const type = result.columnType(index).toString();
    return { name, isNumeric: NUMERIC.test(type), isText: TEXT.test(type) };
  });
  return { unseen, columns, batches: batchesOf(connection, statement, result) };
}

async function* batchesOf(
  connection: DuckDBConnection,
  statement: DuckDBPreparedStatement,
  result: DuckDBResult,
): AsyncGenerator<Json[][]> {
  try {
    for (;;) {
      const chunk = await result.fetchChunk();
      if (chunk === null || chunk.rowCount === 0) break;
      yield chunk.convertRows(toJson);
    }
    if (await connection.run('SELECT 1').catch(() => undefined)) return;
  } finally {
    await connection.run('ROLLBACK');
  }
  // It fails again, and this time says why.
  await statement.run();
  throw new StorageError('The query failed before its last row.');
}

/**
 * As DuckDB's own, but whole numbers that JavaScript can represent stay numbers, even in lists and structs, and a date
 * without end is `infinity`, as a timestamp is.
 */
const toJson: DuckDBValueConverter<Json> = (value, type, converter) => {
  if (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) return Number(value);
  if (value instanceof DuckDBDateValue && !value.isFinite) return value.days < 0 ? '-infinity' : 'infinity';
  return JsonDuckDBValueConverter(value, type, converter);
};
