import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { messageOf, ReadershipError } from '../../errors.js';
import { ignoreMissing, syncToDisk } from '../../files.js';
import { storageFailure } from '../../storage.js';
import { literal } from '../duckdb.js';

/** The dataset is not up to date; the next publication tries again. */
export class DatasetError extends ReadershipError {}

/** Writes a file beside the one that it replaces, unless it has the same bytes; returns whether it replaced it. */
export async function replaceFile(
  connection: DuckDBConnection,
  file: string,
  rows: string,
  isAlways: boolean,
): Promise<boolean> {
  // Engines skip names that begin with a dot.
  const next = join(dirname(file), `.${basename(file)}.next`);
  try {
    await connection.run(
      `COPY (${rows}) TO ${literal(next)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
    );
    const last = isAlways ? undefined : await readFile(file).catch(ignoreMissing);
    if (last?.equals(await readFile(next)) === true) return false;
    await chmod(next, 0o644);
    await syncToDisk(next);
    await rename(next, file);
    await syncToDisk(dirname(file));
    return true;
  } finally {
    await rm(next, { force: true });
  }
}

/** The mode of the dataset's directory decides who has access; those in it get its mode, and are readable. */
export async function makeDirectory(directory: string, location: string): Promise<void> {
  const first = await mkdir(directory, { recursive: true });
  if (first === undefined) return;
  const { mode } = await stat(location);
  for (let made = directory; made.startsWith(first); made = dirname(made)) {
    await chmod(made, (mode & 0o7777) | 0o555);
    await syncToDisk(dirname(made));
  }
}

const ADVICE = [
  [/ENOSPC|No space left|EDQUOT|Disk quota/, 'make room there'],
  [/EEXIST|ENOTDIR|Not a directory/, 'name a directory'],
  // Node.js reports ENOENT when it creates nested directories on a read-only file system.
  [/EACCES|EPERM|EROFS|Permission denied|Read-only|ENOENT.*, mkdir/, 'give this user write access there'],
] as const;

/** A failure of the disk. DuckDB's errors have no code, only the words of the system. */
export function diskError(location: string, cause: unknown): ReadershipError {
  const why = messageOf(cause);
  const next = ADVICE.find(([sign]) => sign.test(why))?.[1];
  return next === undefined
    ? storageFailure(`publish the Parquet dataset ${location}`, cause)
    : new DatasetError(`The Parquet dataset ${location} is not up to date: ${why}; ${next}.`, { cause });
}
