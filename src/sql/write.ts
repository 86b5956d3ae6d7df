import type { DuckDBConnection } from '@duckdb/node-api';
import { createWriteStream } from 'node:fs';
import { lstat, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf, StorageError } from '../errors.js';
import { ignoreMissing } from '../files.js';
import { quoted } from '../warehouse/instance.js';
import { expectOneSelect } from './answer.js';

/** Where text goes when no file is named. */
export interface TextSink {
  /** False when the sink is full; `drained` resolves when it takes more. */
  readonly write: (text: string) => boolean;
  readonly drained: () => Promise<unknown>;
}

/**
 * A file that appears when it is whole. It is written in a directory of its own beside it, which
 * nobody else may write, and then moved: a planted link is never followed.
 */
export class OutputFile {
  readonly unfinished: string;

  private constructor(
    readonly path: string,
    private readonly directory: string,
  ) {
    this.unfinished = join(directory, basename(path));
  }

  /** Throws a `StorageError` where the file cannot be written, or is not a regular one. */
  static async create(path: string): Promise<OutputFile> {
    try {
      await expectRegular(path);
      return new OutputFile(path, await mkdtemp(`${path}.unfinished-`));
    } catch (cause) {
      throw failure(path, cause);
    }
  }

  /** Writes it with `write`, and puts it in place of the one before it. */
  async replace(write: (unfinished: string) => Promise<void>): Promise<void> {
    try {
      await write(this.unfinished);
      await expectRegular(this.path);
      await rename(this.unfinished, this.path);
    } catch (cause) {
      // Errors of the query have no system call.
      throw cause instanceof Error && 'syscall' in cause ? failure(this.path, cause) : cause;
    }
  }

  /** Removes what was left unfinished. */
  close(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

async function expectRegular(path: string): Promise<void> {
  const stats = await lstat(path).catch(ignoreMissing);
  if (stats?.isSymbolicLink() === true)
    throw new StorageError(`Cannot write the answer to ${path}: it is a symbolic link. Name its target.`);
  if (stats?.isFile() === false)
    throw new StorageError(
      `Cannot write the answer to ${path}: it is not a regular file. To use a pipe or a device, leave --output out and redirect.`,
    );
}

const failure = (path: string, cause: unknown): StorageError =>
  cause instanceof StorageError
    ? cause
    : new StorageError(`Cannot write the answer to ${path}: ${messageOf(cause)}`, { cause });

/** Writes pieces as they come. */
export const writePieces = (pieces: AsyncIterable<string | Uint8Array>, file: OutputFile): Promise<void> =>
  file.replace((unfinished) => pipeline(Readable.from(pieces), createWriteStream(unfinished)));

/** Writes pieces of text as they come, no faster than they are taken. */
export async function writeText(
  pieces: AsyncIterable<string>,
  file: OutputFile | undefined,
  sink: TextSink,
): Promise<void> {
  if (file !== undefined) await writePieces(pieces, file);
  else for await (const piece of pieces) if (!sink.write(piece)) await sink.drained();
}

/** DuckDB writes the answer to a query as Parquet. Its connection must be allowed to write the unfinished file. */
export async function writeParquet(
  connection: DuckDBConnection,
  sql: string,
  file: OutputFile,
): Promise<void> {
  await expectOneSelect(connection, sql);
  const query = sql.trim().replace(/;+$/, '');
  await file.replace(async (unfinished) => {
    await connection.run(`COPY (${query}\n) TO ${quoted(unfinished)} (FORMAT parquet, COMPRESSION zstd)`);
  });
}
