import type { DuckDBConnection } from '@duckdb/node-api';
import { createWriteStream } from 'node:fs';
import { lstat, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf, messageOf, StorageError } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { unformulated, unformulatedSql } from '../format/text.js';
import { identifier, literal } from '../warehouse/duckdb.js';
import { expectOneSelect, isOneSelect } from './answer.js';

/** Where text goes if no file is given. */
export interface TextSink {
  /** False if the sink is full; `drained` resolves when it accepts more. */
  readonly write: (text: string) => boolean;
  readonly drained: () => Promise<unknown>;
}

/**
 * A file that appears only when it is complete. It is written in a private directory next to the
 * target and then moved, so a planted link is never followed.
 */
export class OutputFile {
  readonly unfinished: string;

  private constructor(
    readonly path: string,
    private readonly directory: string,
  ) {
    this.unfinished = join(directory, basename(path));
  }

  /** Throws a `StorageError` if the file cannot be written or is not a regular file. */
  static async create(path: string): Promise<OutputFile> {
    try {
      await expectRegular(path);
      return new OutputFile(path, await mkdtemp(`${path}.unfinished-`));
    } catch (cause) {
      throw failure(path, cause);
    }
  }

  /** Writes it with `write`, and replaces the existing file. */
  async replace(write: (unfinished: string) => Promise<void>): Promise<void> {
    try {
      await write(this.unfinished);
      await rename(this.unfinished, this.path);
    } catch (cause) {
      // Query errors have no system call.
      throw cause instanceof Error && 'syscall' in cause ? failure(this.path, cause) : cause;
    }
  }

  /** Removes the unfinished file. */
  close(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

async function expectRegular(path: string): Promise<void> {
  const stats = await lstat(path).catch(ignoreMissing);
  if (stats?.isSymbolicLink() === true)
    throw new StorageError(
      `Cannot write the result to ${path}: it is a symbolic link. Use its target instead.`,
    );
  if (stats?.isFile() === false)
    throw new StorageError(
      `Cannot write the result to ${path}: it is not a regular file. For a pipe or a device, omit --output and redirect.`,
    );
}

function failure(path: string, cause: unknown): StorageError {
  if (cause instanceof StorageError) return cause;
  const why = codeOf(cause) === 'ENOENT' ? `there is no directory ${dirname(path)}` : messageOf(cause);
  return new StorageError(`Cannot write the result to ${path}: ${why}`, { cause });
}

/** Writes chunks of text as they arrive, respecting backpressure. */
export async function writeText(
  pieces: AsyncIterable<string>,
  file: OutputFile | undefined,
  sink: TextSink,
): Promise<void> {
  if (file !== undefined)
    await file.replace((unfinished) => pipeline(Readable.from(pieces), createWriteStream(unfinished)));
  else for await (const piece of pieces) if (!sink.write(piece)) await sink.drained();
}

/** Formats that DuckDB writes itself, many times faster than rows that pass through JavaScript. */
const COPIED = {
  parquet: 'FORMAT parquet, COMPRESSION zstd',
  csv: 'FORMAT csv, HEADER',
  json: 'FORMAT json, ARRAY true',
  ndjson: 'FORMAT json',
} as const;
type CopiedFormat = keyof typeof COPIED;
export const isCopied = (format: string): format is CopiedFormat => format in COPIED;

/**
 * Lets DuckDB write the result of a single statement. Its connection must be allowed to write the
 * unfinished file. Returns false, with nothing written, if DuckDB would write other text than
 * `formatAnswer`: for several statements, and for columns such as lists.
 */
export async function copyResult(
  connection: DuckDBConnection,
  sql: string,
  format: CopiedFormat,
  file: OutputFile,
): Promise<boolean> {
  if (format === 'parquet') await expectOneSelect(connection, sql);
  const rows = format === 'parquet' ? queryOf(sql) : await plainOf(connection, sql, format);
  if (rows === undefined) return false;
  await file.replace(async (unfinished) => {
    await connection.run(`COPY (${rows}\n) TO ${literal(unfinished)} (${COPIED[format]})`);
  });
  return true;
}

const queryOf = (sql: string): string => sql.trim().replace(/;+$/, '');

const LARGE_INTEGER = /^U?(BIG|HUGE)INT$/;
const PLAIN =
  /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BOOLEAN|VARCHAR|DATE|TIMESTAMP|FLOAT|DOUBLE|DECIMAL\(.*\))$/;

/** A query for the same rows, with text guarded and numbers exact, as `formatAnswer` writes them. */
async function plainOf(
  connection: DuckDBConnection,
  sql: string,
  format: Exclude<CopiedFormat, 'parquet'>,
): Promise<string | undefined> {
  if (!(await isOneSelect(connection, sql))) return undefined;
  const statement = await connection.prepare(queryOf(sql));
  const columns = Array.from({ length: statement.columnCount }, (_, index) => ({
    place: `c${index}`,
    name: statement.columnName(index),
    type: statement.columnType(index).toString(),
  }));
  statement.destroySync();
  const names = new Set(columns.map(({ name }) => name));
  if (columns.some(({ type }) => !PLAIN.test(type)) || names.size < columns.length) return undefined;
  const values = columns.map(({ place, name, type }) => {
    const title = format === 'csv' ? unformulated(name) : name;
    return `${plainValue(place, type, format)} AS ${identifier(title)}`;
  });
  return `SELECT ${values.join()} FROM (${queryOf(sql)}\n) AS result(${columns.map(({ place }) => place).join()})`;
}

/** A spreadsheet runs text that begins like a formula, and JavaScript does not hold every number. */
function plainValue(column: string, type: string, format: 'csv' | 'json' | 'ndjson'): string {
  const isText = format === 'csv';
  if (isText && type === 'VARCHAR') return unformulatedSql(column);
  if (/^(FLOAT|DOUBLE)$/.test(type)) {
    const [finite, nan, infinite] = isText
      ? [`${column}::VARCHAR`, "'NaN'", `if(${column} > 0, 'Infinity', '-Infinity')`]
      : [`to_json(${column})`, "to_json('NaN')", 'NULL'];
    return `CASE WHEN isfinite(${column}) THEN ${finite} WHEN isnan(${column}) THEN ${nan} WHEN ${column} IS NOT NULL THEN ${infinite} END`;
  }
  if (isText || !LARGE_INTEGER.test(type)) return column;
  return `if(abs(${column}::HUGEINT) <= ${Number.MAX_SAFE_INTEGER}, to_json(${column}), to_json(${column}::VARCHAR))`;
}
