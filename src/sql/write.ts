import type { DuckDBConnection } from '@duckdb/node-api';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf, StorageError } from '../errors.js';
import { quoted } from '../warehouse/instance.js';

/** Where text goes when no file is named. */
export interface TextSink {
  /** False when the sink is full; `drained` resolves when it takes more. */
  readonly write: (text: string) => boolean;
  readonly drained: () => Promise<unknown>;
}

/** Writes pieces of text as they come, no faster than they are taken; into a file, it appears when it is whole. */
export async function writeText(
  pieces: AsyncIterable<string>,
  target: string | undefined,
  sink: TextSink,
): Promise<void> {
  if (target !== undefined)
    await whenWhole(target, (unfinished) => pipeline(Readable.from(pieces), createWriteStream(unfinished)));
  else for await (const piece of pieces) if (!sink.write(piece)) await sink.drained();
}

/** Lets the database write the answer to a query as Parquet. Its connection must be allowed to write that file. */
export async function writeParquet(connection: DuckDBConnection, sql: string, target: string): Promise<void> {
  const query = sql.trim().replace(/;+$/, '');
  await connection.run(`COPY (${query}\n) TO ${quoted(target)} (FORMAT parquet, COMPRESSION zstd)`);
}

async function whenWhole(target: string, write: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = `${target}.unfinished`;
  try {
    await write(unfinished);
    await rename(unfinished, target);
  } catch (cause) {
    await rm(unfinished, { force: true });
    if (isOfTheFile(cause))
      throw new StorageError(`Cannot write the answer to ${target}: ${messageOf(cause)}`, { cause });
    throw cause;
  }
}

/** Faults of the database carry no code of the file system. */
const isOfTheFile = (error: unknown): boolean => error instanceof Error && 'syscall' in error;
