import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { LockedError, messageOf, StorageError } from '../errors.js';
import { exists, expectDirectory } from '../files.js';
import { sleepFor } from '../sleep.js';
import { refuseToGoBack } from './behind.js';
import { type DatabaseLimits, LiveFile, logOf, readyOf } from './live-file.js';
import { createDatabase, expectMigrated, migrateLive, schemaVersion } from './migrate.js';
import { isHeldElsewhere } from './duckdb.js';
import { isOfStorage, storageFailure } from '../storage.js';
import { Warehouse } from './warehouse.js';

const RETRY_DELAY_MS = 250;

const holderSchema = z.object({ pid: z.int(), command: z.string(), since: z.string() });

export interface HoldOptions extends DatabaseLimits {
  /** The command to name to processes that find the database locked, such as `readership export`. */
  readonly command: string;
  readonly now: () => Date;
  /** How long to wait for another process to release it. */
  readonly maxWaitMs: number;
  /** Called once with the process it waits for. */
  readonly onHeld?: (who: string) => void;
  readonly signal?: AbortSignal;
}

export interface OpenOptions extends HoldOptions {
  /** The history published from it; a database older than that is refused. */
  readonly historyFile?: string;
  /** Throws an `OlderSchemaError` for a database of an older version, instead of migrating it. */
  readonly mustBeMigrated?: boolean;
}

/**
 * Opens the live database at `path`, creating and migrating it as needed. DuckDB's own lock on the
 * file keeps other processes out, and is released when its process ends, however that happens. The
 * `.lock` file only records the holder.
 *
 * Throws a `LockedError` if another process still holds it after `maxWaitMs`, a `BehindError` if it
 * is older than the history published from it, and a `StorageError` if it cannot be opened or a
 * newer Readership wrote it.
 */
export async function openWarehouse(path: string, options: OpenOptions): Promise<Warehouse> {
  const { file, release } = await holdLiveFile(path, options);
  try {
    await prepare(file, options);
    return new Warehouse(file, release);
  } catch (error) {
    await release();
    throw isOfStorage(error) ? storageFailure(`open the database ${path}`, error) : error;
  }
}

async function prepare(file: LiveFile, { mustBeMigrated, historyFile }: OpenOptions): Promise<void> {
  if (mustBeMigrated === true) await expectMigrated(file.connection, file.path);
  // An empty file has no tables to compare, and nothing to lose.
  const isNew = mustBeMigrated !== true && (await schemaVersion(file.connection, file.path)) === 0;
  if (isNew) await migrateLive(file);
  if (historyFile !== undefined) await refuseToGoBack(file.connection, file.path, historyFile);
  if (mustBeMigrated !== true && !isNew) await migrateLive(file);
}

/** The locked live file, and how to release it. */
export interface HeldFile {
  readonly file: LiveFile;
  readonly release: () => Promise<void>;
}

/** Locks the live file without changing it, waiting for another holder. Throws as `openWarehouse` does. */
export async function holdLiveFile(path: string, options: HoldOptions): Promise<HeldFile> {
  await makeDirectory(dirname(path));
  const file = await openInTurn(path, options);
  await makePrivate(path);
  const lockFile = `${path}.lock`;
  const holder = { pid: process.pid, command: options.command, since: options.now().toISOString() };
  // On a full disk this fails too, but the database then reports a better error.
  await writeFile(lockFile, JSON.stringify(holder), { mode: 0o600 }).catch(() => undefined);
  const release = async () => {
    // Removed before the lock is released, because afterwards the file may be the next holder's. A
    // file that cannot be removed is as harmless as one that a killed process left.
    await rm(lockFile, { force: true }).catch(() => undefined);
    file.close();
  };
  return { file, release };
}

async function openInTurn(path: string, options: HoldOptions): Promise<LiveFile> {
  const deadlineMs = performance.now() + options.maxWaitMs;
  let hasReported = false;
  for (;;) {
    try {
      if (!(await exists(path)) && !(await exists(readyOf(path)))) await createDatabase(path);
      return await LiveFile.open(path, options);
    } catch (error) {
      if (!isHeldElsewhere(error)) throw storageFailure(`open the database ${path}`, error);
      if (performance.now() >= deadlineMs) throw await lockedError(path, options.maxWaitMs, error);
      if (!hasReported) options.onHeld?.(await whoHolds(path));
      hasReported = true;
      await sleepFor(RETRY_DELAY_MS, options.signal);
    }
  }
}

async function lockedError(path: string, waitedMs: number, cause: unknown): Promise<LockedError> {
  return new LockedError(
    `${path} is locked by ${await whoHolds(path)}; waited ${waitedMs / 1000} s. Nothing was changed. ` +
      `Try again after it ends, or stop it. Reading is never blocked: \`readership sql\` and \`readership report\` use the published history.`,
    { cause },
  );
}

async function whoHolds(path: string): Promise<string> {
  const holder = await readHolder(`${path}.lock`);
  return holder ? `\`${holder.command}\` (process ${holder.pid}, since ${holder.since})` : 'another process';
}

async function readHolder(lockFile: string): Promise<z.infer<typeof holderSchema> | undefined> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(lockFile, 'utf8')));
  } catch {
    // The file is missing or incomplete, so the message omits the holder.
    return undefined;
  }
}

/** A database restored by copying may be readable by others, who could block the export by opening it. */
async function makePrivate(path: string): Promise<void> {
  // There may be no log, and the user may have write access to files owned by another user.
  for (const file of [path, logOf(path)]) await chmod(file, 0o600).catch(() => undefined);
}

/** Creates a private directory. Returns the first of the directories that did not exist, if any. */
export async function makeDirectory(path: string): Promise<string | undefined> {
  try {
    return await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    await expectDirectory(path);
    throw new StorageError(
      `Cannot create the data directory ${path}: ${messageOf(cause)}. Set dataDir to a directory you can write to.`,
      { cause },
    );
  }
}
