import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, constants, copyFile, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, ignoreMissing, READ_ONLY, syncToDisk } from '../files.js';
import { storageFailure } from '../storage.js';
import { changeDatabase } from './duckdb.js';
import { EMPTY_HISTORY, expectFile, logOf } from './history.js';
import { inTransaction } from './query.js';
import { copySorted } from './rewrite.js';

export interface NextVersion {
  /** Makes the changes in a copy, inside a transaction. */
  readonly change: (connection: DuckDBConnection) => Promise<void>;
  /** Called before, outside the transaction, such as to attach a file. */
  readonly prepare?: (connection: DuckDBConnection) => Promise<void>;
  /** Whether to write all rows again, sorted, and not to copy the file. */
  readonly isRewritten?: boolean;
  /** The history that it is a copy of; by default the last version. */
  readonly source?: string;
  /** Throws if the next version must not take the place of the last one, such as when another process is the worker. */
  readonly expectCurrent: () => void | Promise<void>;
  readonly onWarning?: ((words: string) => void) | undefined;
}

/**
 * Replaces the history at `path`, which is never changed in place, by its next version. A reader keeps the version that
 * it opened. After a `StorageError`, the last version is still there.
 */
export async function writeNext(path: string, version: NextVersion): Promise<void> {
  const next = `${path}.next-${process.pid}`;
  try {
    await expectFile(path);
    await removeUnfinished(path);
    const isKnown = await exists(path);
    const isRewritten = isKnown && version.isRewritten === true;
    const source = version.source ?? (isKnown && !isRewritten ? path : EMPTY_HISTORY);
    await copyFile(source, next, constants.COPYFILE_FICLONE);
    // A copy of a read-only file is read-only.
    await chmod(next, 0o600);
    await changeDatabase(next, async (connection) => {
      if (isRewritten) await copySorted(connection, path);
      await version.prepare?.(connection);
      await inTransaction(connection, () => version.change(connection));
    });
    await rm(logOf(next), { force: true });
    await chmod(next, READ_ONLY);
    await syncToDisk(next);
    await version.expectCurrent();
    await removeForeignLog(path, version.onWarning);
    await rename(next, path);
    await syncToDisk(dirname(path));
  } catch (error) {
    await removeUnfinished(path).catch(() => undefined);
    throw error instanceof StorageError
      ? error
      : storageFailure(`write the next version of ${path} (the last one was kept)`, error);
  }
}

/** Removes what killed processes left of next versions, with their logs and temporary files. */
async function removeUnfinished(path: string): Promise<void> {
  for (const name of (await readdir(dirname(path)).catch(ignoreMissing)) ?? [])
    if (name.startsWith(`${basename(path)}.next-`))
      await rm(join(dirname(path), name), { recursive: true, force: true });
}

/** A program that opened the history for writing leaves a log, which readers would apply to every later version. */
export async function removeForeignLog(path: string, onWarning: NextVersion['onWarning']): Promise<void> {
  const log = logOf(path);
  if (!(await exists(log))) return;
  await rm(log, { force: true });
  onWarning?.(
    `Another program has written to the history, and left ${log}. It was removed: the history is only for reading.`,
  );
}
