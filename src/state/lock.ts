import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { timestampColumn } from '../columns.js';
import { LockedError, StorageError } from '../errors.js';
import { moment } from '../format/days.js';
import { sleepFor } from '../sleep.js';
import {
  canLockIn,
  type Database,
  failureOf,
  isBusy,
  isNoDatabase,
  lockless,
  openDatabase,
} from './database.js';
import type { State } from './state.js';
import { readWorkspaceRow } from './workspace.js';

const TAKE_TOKEN =
  'UPDATE worker SET token = token + 1, pid = $pid, command = $command, since = $since RETURNING token';
const RELEASE_TOKEN = 'UPDATE worker SET pid = NULL, command = NULL, since = NULL WHERE token = $token';
const LOCKS_WORK = 'UPDATE workspace SET locks_work_on = $device';

const RETRY_DELAY_MS = 100;

/** A handle that nobody refers to would be closed by garbage collection, and the lock released. */
const handles = new Set<Database>();

interface WorkerOptions {
  /** The command to name to processes that find the lock held, such as `readership export`. */
  readonly command: string;
  readonly now: () => Date;
  /** How long to wait for another worker to end. */
  readonly maxWaitMs: number;
  /** Called once with the worker that it waits for. */
  readonly onHeld?: (who: string) => void;
  readonly signal?: AbortSignal;
}

/** Another worker has taken over, because somebody deleted or replaced the lock's file. */
class ReplacedWorkerError extends StorageError {}

/** The right to load days and to send, until `release`. */
export class Worker {
  constructor(
    private readonly state: State,
    private readonly lock: DataLock,
    readonly token: number,
  ) {}

  /**
   * Throws a `ReplacedWorkerError` if another worker has taken over. The lock alone does not show it, if its file was
   * deleted or replaced.
   */
  expectCurrent(): void {
    const current = this.state.get('SELECT token FROM worker', z.object({ token: z.int() }));
    if (current?.token === this.token) return;
    throw new ReplacedWorkerError(
      `Another process of Readership has taken over ${this.state.path}, because the file worker.lock beside it was deleted or replaced. ` +
        'Nothing more was stored or sent by this one. Leave that file alone while Readership runs.',
    );
  }

  async release(): Promise<void> {
    if (!this.lock.isHeld()) return;
    try {
      await this.state.change(RELEASE_TOKEN, { token: this.token });
    } finally {
      this.lock.release();
    }
  }
}

/** The lock of a data directory: without a token, while its state is replaced. */
interface DataLock {
  readonly isHeld: () => boolean;
  readonly release: () => void;
  /** Removes its file, and gives it back: where the directory was new, and nothing was stored. */
  readonly remove: () => void;
}

/**
 * Waits until no other process works in the data directory, and takes the lock: one of the operating system, which ends
 * with the process. The state, which may be damaged, names the holder. Throws a `LockedError` if another process still
 * holds it after `maxWaitMs`, and a `StorageError` if it cannot be taken.
 */
export async function lockData(
  dataDir: string,
  state: State | undefined,
  options: WorkerOptions,
): Promise<DataLock> {
  const path = join(dataDir, 'worker.lock');
  const handle = await lock(path, state, options);
  handles.add(handle);
  const release = () => {
    handles.delete(handle);
    handle.close();
  };
  const remove = () => {
    rmSync(path, { force: true });
    release();
  };
  return { isHeld: () => handles.has(handle), release, remove };
}

/**
 * Takes the lock as `lockData` does, and a token. Throws a `StorageError` also if the state is damaged: nothing is sent by
 * what a damaged one says.
 */
export async function acquireWorker(dataDir: string, state: State, options: WorkerOptions): Promise<Worker> {
  const held = await lockData(dataDir, state, options);
  const values = { pid: process.pid, command: options.command, since: options.now() };
  try {
    state.expectSound();
    const token = await state.transaction(
      () => state.get(TAKE_TOKEN, z.object({ token: z.int() }), values)?.token,
    );
    if (token === undefined) throw new Error('the state has no row for its worker');
    return new Worker(state, held, token);
  } catch (error) {
    held.release();
    throw error;
  }
}

async function lock(
  path: string,
  state: State | undefined,
  { maxWaitMs, onHeld, signal }: WorkerOptions,
): Promise<Database> {
  const endMs = performance.now() + maxWaitMs;
  let hasReported = false;
  for (;;) {
    try {
      return tryToLock(path);
    } catch (error) {
      if (isNoDatabase(error))
        throw new StorageError(
          `${path} is not the lock of Readership: something else was written to it. Nothing was changed. Delete it, then run the command again.`,
          { cause: error },
        );
      if (!isBusy(error)) throw failureOf('lock', path, error);
      if (performance.now() >= endMs)
        throw new LockedError(
          `${path} is held by ${holderOf(state)}; waited ${maxWaitMs / 1000} s. Nothing was changed. ` +
            'Try again after it ends, or stop it. Reading is never blocked.',
          { cause: error },
        );
      if (!hasReported) {
        if (!canLockIn(dirname(path))) throw lockless(dirname(path), error);
        onHeld?.(holderOf(state));
        hasReported = true;
      }
    }
    await sleepFor(RETRY_DELAY_MS, signal);
  }
}

function tryToLock(path: string): Database {
  const handle = openDatabase(path, 0);
  try {
    // Nothing is ever committed to it, so it needs no journal on disk. Without a write, a file that is not writable
    // would give a lock that others can have too.
    handle.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; CREATE TABLE held (since TEXT)');
    return handle;
  } catch (error) {
    handle.close();
    throw error;
  }
}

const holderRow = z.object({
  pid: z.int().nullable(),
  command: z.string().nullable(),
  since: timestampColumn.nullable(),
});

/** The worker; undefined if there is none. */
export function readHolder(state: State) {
  const { pid, command, since } = state.get('SELECT pid, command, since FROM worker', holderRow) ?? {};
  return pid == null || command == null || since == null ? undefined : { pid, command, since };
}

/** The worker, for people. */
function holderOf(state: State | undefined): string {
  const holder = state && readHolder(state);
  if (holder === undefined) return 'another process';
  return `\`${holder.command}\` (process ${holder.pid}, since ${moment(holder.since)})`;
}

const MAX_PROBE_MS = 30_000;

/** Ends with 3 if another process holds the lock on the file, as it should. */
const PROBE = `
  const { DatabaseSync } = require(process.argv[1]);
  try {
    new DatabaseSync(process.argv[2], { timeout: 0 }).exec('BEGIN IMMEDIATE');
  } catch (error) {
    process.exit(error.errcode === 5 ? 3 : 1);
  }
  process.exit(0);`;

/**
 * Throws a `StorageError` unless a second process meets the lock that this one holds on the data directory: on some
 * network file systems, locks do nothing. Found out once for each device.
 */
export async function expectLocks(dataDir: string, state: State): Promise<void> {
  const device = String((await stat(dataDir)).dev);
  if (readWorkspaceRow(state).locks_work_on === device) return;
  const library = createRequire(import.meta.url).resolve('@photostructure/sqlite');
  const { status, error } = spawnSync(
    process.execPath,
    ['-e', PROBE, library, join(dataDir, 'worker.lock')],
    { stdio: 'ignore', timeout: MAX_PROBE_MS, killSignal: 'SIGKILL' },
  );
  if (status === 0) throw lockless(dataDir);
  if (status !== 3)
    throw new StorageError(
      `Cannot find out whether locks work in ${dataDir}: a second process of Node.js ended with ${status ?? 'a signal'}. ` +
        'Nothing was changed. Run the command again; if it fails again: readership doctor',
      { cause: error },
    );
  await state.change(LOCKS_WORK, { device });
}
