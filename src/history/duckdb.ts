import {
  type DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  type DuckDBMaterializedResult,
  DuckDBTimestampValue,
  type DuckDBValue,
  type DuckDBValueConverter,
  type Json,
  JsonDuckDBValueConverter,
} from '@duckdb/node-api';
import { totalmem } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { type Day, day, daysBetween } from '../day.js';
import { messageOf } from '../errors.js';

/** A format that DuckDB 1.4 and later can read. */
const STORAGE_VERSION = 'v1.4.0';

/** DuckDB takes what a file needs, as one of SQLite does, from the network if it may. */
export const NO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
} as const;

/** Whether a file could not be opened because it is one of SQLite. */
export const isOfSqlite = (error: unknown): boolean => messageOf(error).includes('sqlite_scanner');

/**
 * Bytes that DuckDB may keep in memory for an export, a report or a new version of the history: a third of what this
 * machine or container has, at most 1 GB. The rest goes to temporary files next to the database.
 */
export function maxMemory(): number {
  // 0 if the limit of the container is not known.
  const limit = process.constrainedMemory() || Infinity;
  return Math.floor(Math.min(1e9, Math.min(totalmem(), limit) / 3));
}

/** Changes a database file that nobody else knows yet. It has no log afterwards. */
export async function changeDatabase<Result>(
  path: string,
  change: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const instance = await DuckDBInstance.create(path, {
    ...NO_EXTENSIONS,
    storage_compatibility_version: STORAGE_VERSION,
    checkpoint_threshold: '1TB',
    memory_limit: `${maxMemory()}B`,
  });
  const connection = await instance.connect();
  try {
    const result = await change(connection);
    await connection.run('CHECKPOINT');
    return result;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Runs `work` on a connection to nothing, which can attach files. */
export async function withConnection<Result>(
  work: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const instance = await DuckDBInstance.create(':memory:', {
    ...NO_EXTENSIONS,
    memory_limit: `${maxMemory()}B`,
  });
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** A string as an SQL literal. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A name as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Values for the named parameters of a statement. A `Date` is bound as a UTC timestamp. */
export type Parameters = Readonly<
  Record<string, string | number | boolean | Date | DuckDBDateValue | DuckDBBlobValue | null>
>;

/** Anything that can be queried: a version of the history, or the newest one. */
export interface Reader {
  /**
   * The rows of one statement, checked against `row`. Numbers come as `number`, dates as `YYYY-MM-DD`,
   * timestamps as ISO 8601 in UTC. Parameters that the statement does not name are ignored.
   */
  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]>;
}

/** Reads whole columns: many rows, of which no object is made, without a schema. */
export interface Columns {
  columns(sql: string, parameters?: Parameters): Promise<DuckDBValue[][]>;
}

/**
 * A reader that asks each question once: the page and the email of a report are about the same rows, also if the state
 * changes meanwhile.
 */
export function askingOnce(reader: Reader): Reader {
  const answers = new Map<string, Promise<unknown[]>>();
  return {
    query: async (sql, row, parameters) => {
      const question = JSON.stringify([sql, parameters]);
      const answer = answers.get(question) ?? reader.query(sql, z.unknown(), parameters);
      answers.set(question, answer);
      return z.array(row).parse(await answer);
    },
  };
}

export const readerOf = (connection: DuckDBConnection): Reader => ({
  query: (sql, row, parameters) => queryRows(connection, sql, row, parameters),
});

/** A row of a statement whose columns are not known here. */
export const rowSchema = z.record(z.string(), z.json());
export type Row = z.infer<typeof rowSchema>;

/** A query with its parameters filled in. */
export const filledIn = (sql: string, parameters: Parameters): string =>
  sql.replaceAll(/\$([a-z_]+)/g, (_, name: string) => {
    const value = parameters[name] ?? null;
    return typeof value === 'string' ? literal(value) : String(value).toUpperCase();
  });

/** Runs `query` on a connection: see `Reader`. */
export async function queryRows<Row>(
  connection: DuckDBConnection,
  sql: string,
  row: z.ZodType<Row>,
  parameters: Parameters = {},
): Promise<Row[]> {
  const result = await runStatement(connection, sql, parameters);
  return parseRows(result.yieldConvertedRowObjects(toPlain), row);
}

/** Parses rows by chunks. Between chunks, other work has its turn: many rows would stop a server for seconds. */
export async function parseRows<Row>(
  chunks: AsyncIterable<readonly unknown[]> | Iterable<readonly unknown[]>,
  row: z.ZodType<Row>,
): Promise<Row[]> {
  const parsed: Row[][] = [];
  for await (const chunk of chunks) {
    if (parsed.length > 0) await setImmediate();
    parsed.push(z.array(row).parse(chunk));
  }
  return parsed.flat();
}

/** Runs one statement with the parameters it names. */
export async function runStatement(
  connection: DuckDBConnection,
  sql: string,
  parameters: Parameters,
): Promise<DuckDBMaterializedResult> {
  const statement = await connection.prepare(sql);
  try {
    for (let index = 1; index <= statement.parameterCount; index++) {
      const name = statement.parameterName(index);
      const value = parameters[name];
      if (value === undefined) throw new RangeError(`no value for parameter $${name}`);
      statement.bindValue(index, toDuckDB(value));
    }
    return await statement.run();
  } finally {
    statement.destroySync();
  }
}

/** Runs `work` in a transaction: committed when it resolves, rolled back when it throws, or when the commit fails. */
export async function inTransaction<Result>(
  connection: DuckDBConnection,
  work: () => Promise<Result>,
): Promise<Result> {
  await connection.run('BEGIN');
  const result = await work().catch(async (error: unknown) => {
    // After a failed rollback the connection is unusable, so this error is dropped.
    await connection.run('ROLLBACK').catch(() => undefined);
    throw error;
  });
  await connection.run('COMMIT');
  return result;
}

/** A day as DuckDB counts it, from January 1, 1970. */
export const dateOf = (at: Day): DuckDBDateValue => new DuckDBDateValue(daysBetween(day('1970-01-01'), at));

export const toDuckDB = (value: Parameters[string]): DuckDBValue =>
  value instanceof Date ? new DuckDBTimestampValue(BigInt(value.getTime()) * 1000n) : value;

/** As the library's JSON converter, but whole numbers stay numbers, and timestamps are marked as UTC. */
const toPlain: DuckDBValueConverter<Json> = (value, type, converter) => {
  if (typeof value === 'bigint') {
    const number = Number(value);
    if (!Number.isSafeInteger(number))
      throw new RangeError(`whole number too large to hold exactly: ${value}`);
    return number;
  }
  if (value instanceof DuckDBTimestampValue) return new Date(Number(value.micros / 1000n)).toISOString();
  // As text, `0.5 * views` would be no number to reports.
  if (value instanceof DuckDBDecimalValue) return value.toDouble();
  return JsonDuckDBValueConverter(value, type, converter);
};
