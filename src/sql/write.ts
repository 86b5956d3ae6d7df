import type { DuckDBConnection } from '@duckdb/node-api';
import { createWriteStream } from 'node:fs';
import { lstat, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf, messageOf, StorageError } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { literal } from '../history/duckdb.js';
import type { Output } from '../terminal/output.js';
import { expectOneSelect } from './answer.js';

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

/** Writes pieces of text to a file, or else to standard output, no faster than they are read there. */
export async function writeText(
  pieces: AsyncIterable<string>,
  file: OutputFile | undefined,
  { write, drained }: Pick<Output, 'write' | 'drained'>,
): Promise<void> {
  if (file !== undefined)
    await file.replace((unfinished) => pipeline(Readable.from(pieces), createWriteStream(unfinished)));
  else for await (const piece of pieces) if (!write(piece)) await drained();
}

/**
 * Lets DuckDB write the result of a single query as Parquet. Its connection must be allowed to write the unfinished
 * file.
 */
export async function copyParquet(
  connection: DuckDBConnection,
  sql: string,
  file: OutputFile,
): Promise<void> {
  await expectOneSelect(connection, sql);
  const rows = sql.trim().replace(/;+$/, '');
  await file.replace(async (unfinished) => {
    await connection.run(`COPY (${rows}\n) TO ${literal(unfinished)} (FORMAT parquet, COMPRESSION zstd)`);
  });
}
