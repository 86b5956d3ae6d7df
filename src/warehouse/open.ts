import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { LockedError, StorageError } from '../errors.js';
import { exists, makeDirectory } from '../files.js';
import { moment, plainDayRange } from '../format/days.js';
import { counted } from '../format/numbers.js';
import { sleepFor } from '../sleep.js';
import { isOfStorage, RESTORE, storageFailure } from '../storage.js';
import { AttachError, isHeldElsewhere, whileAttached } from './duckdb.js';
import { LiveFile, lockOf, logOf, readyOf } from './live-file.js';
import { completeLive, createDatabase, hasSchema } from './schema.js';
import { dayColumn, queryRows, readSql, timestampColumn } from './query.js';
import { Warehouse } from './warehouse.js';

const LACKING = readSql(import.meta.url, 'statements/lacking.sql');
const RETRY_DELAY_MS = 250;

const holderSchema = z.object({ pid: z.int(), command: z.string(), since: z.string() });

export interface HoldOptions {
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
  /** Leaves the views and comments of another program as they are, and throws a `StorageError` if there are no tables. */
  readonly mustNotChange?: boolean;
}

/**
 * Opens the live database at `path`, creating it as needed. DuckDB's own lock on the
 * file keeps other processes out, and is released when its process ends, however that happens. The
 * `.lock` file only records the holder.
 *
 * Throws a `LockedError` if another process still holds it after `maxWaitMs`, a `BehindError` if it
 * is older than the history published from it, and a `StorageError` if it cannot be opened or
 * another version of Readership wrote it.
 */
export async function openWarehouse(path: string, options: OpenOptions): Promise<Warehouse> {
  const warehouse = lazyWarehouse(path, options);
  await warehouse.open();
  return warehouse;
}

/** As `openWarehouse`, but the database is opened when it is first used. */
export const lazyWarehouse = (path: string, options: OpenOptions): Warehouse =>
  new Warehouse(path, async () => {
    const file = await holdLiveFile(path, options);
    try {
      await prepare(file, options);
      return file;
    } catch (error) {
      await file.close();
      throw isOfStorage(error) ? storageFailure(`open the database ${path}`, error) : error;
    }
  });

async function prepare(file: LiveFile, { mustNotChange, historyFile }: OpenOptions): Promise<void> {
  const { path } = file;
  if (!(await hasSchema(file.connection, path))) {
    if (mustNotChange === true)
      throw new StorageError(`${path} has no tables yet. They are created by: readership export`);
    // It has nothing to compare, and nothing to lose. Completing it reopens the file.
    await completeLive(file);
  }
  if (historyFile !== undefined) await refuseToGoBack(file.connection, path, historyFile);
  if (mustNotChange !== true) await completeLive(file);
}

/** The live database is missing, or older than the history published from it. */
export class BehindError extends StorageError {}

/** Throws a `BehindError` if the live database is missing but the history published from it exists. */
export async function refuseToForget(liveFile: string, historyFile: string): Promise<void> {
  if (await exists(liveFile)) return;
  if (await exists(historyFile))
    throw new BehindError(
      `The live database ${liveFile} is missing, but the history published from it exists. A new database would load ` +
        `everything again. Nothing was changed.\n` +
        `${RESTORE}\nOr, to start over, move ${historyFile} away, and ${logOf(liveFile)} if it exists.`,
    );
}

/**
 * Throws a `BehindError` when the live database on `connection` is an older state than the history
 * published from it, such as yesterday's copy, or a file whose log was deleted. Every publication
 * holds the run that published it, and that run was committed to the live database first, so a live
 * database without it has gone backwards.
 */
async function refuseToGoBack(connection: DuckDBConnection, path: string, historyFile: string) {
  // A program that opened it for writing leaves a log, with which nobody can read it.
  await rm(logOf(historyFile), { force: true });
  try {
    await whileAttached(connection, historyFile, 'published', async () => {
      // A history with another schema, or a damaged one, says nothing about the live database.
      const [lacking] = await queryRows(connection, LACKING, lackingRow).catch(() => []);
      if (lacking === undefined) return;
      const { runs, since, days, first_day: first, last_day: last } = lacking;
      const range = first && last ? ` (${plainDayRange({ first, last })})` : '';
      const when = since ? ` since ${moment(since)}` : '';
      const lost = days === 0 ? '' : `${counted(days, 'loaded day')}${range} and `;
      const again = days === 0 ? '' : 'load those days again and ';
      throw new BehindError(
        `The live database ${path} is older than the history published from it: it lacks ${lost}` +
          `${counted(runs, 'recorded step')}${when}. Either it was replaced with an older copy, or its log (${logOf(path)}) was deleted or cut short. ` +
          `Continuing would ${again}overwrite the newer published state with the older one. Nothing was changed.\n` +
          `${RESTORE}\nOr, to continue from the older state, move ${historyFile} away.`,
      );
    });
  } catch (error) {
    // A published history that cannot be opened is written again by the next publication.
    if (!(error instanceof AttachError)) throw error;
  }
}

const lackingRow = z.object({
  runs: z.int(),
  since: timestampColumn.nullable(),
  days: z.int(),
  first_day: dayColumn.nullable(),
  last_day: dayColumn.nullable(),
});

/** Locks the live file without changing it, waiting for another holder. Throws as `openWarehouse` does. */
export async function holdLiveFile(path: string, options: HoldOptions): Promise<LiveFile> {
  await makeDirectory(dirname(path));
  const file = await openInTurn(path, options);
  // A database restored by copying may be readable by others, who could block the export by opening it. There may be no
  // log, and the user may have write access to files owned by another user.
  for (const own of [path, logOf(path)]) await chmod(own, 0o600).catch(() => undefined);
  const holder = { pid: process.pid, command: options.command, since: options.now().toISOString() };
  // On a full disk this fails too, but the database then reports a better error.
  await writeFile(lockOf(path), JSON.stringify(holder), { mode: 0o600 }).catch(() => undefined);
  return file;
}

async function openInTurn(path: string, options: HoldOptions): Promise<LiveFile> {
  const deadlineMs = performance.now() + options.maxWaitMs;
  let hasReported = false;
  for (;;) {
    try {
      if (!(await exists(path)) && !(await exists(readyOf(path)))) await createDatabase(path);
      return await LiveFile.open(path);
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
  const words =
    `${path} is locked by ${await whoHolds(path)}; waited ${waitedMs / 1000} s. Nothing was changed. ` +
    `Try again after it ends, or stop it. Reading is never blocked: \`readership sql\` and \`readership report\` use the published history.`;
  return new LockedError(words, { cause });
}

async function whoHolds(path: string): Promise<string> {
  try {
    const { command, pid, since } = holderSchema.parse(JSON.parse(await readFile(lockOf(path), 'utf8')));
    return `\`${command}\` (process ${pid}, since ${since})`;
  } catch {
    // The file is missing or incomplete.
    return 'another process';
  }
}
