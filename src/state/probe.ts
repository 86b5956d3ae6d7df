import { spawnSync } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { readSql } from '../columns.js';
import { StorageError } from '../errors.js';
import { lockless } from './failures.js';
import type { State } from './state.js';
import { readWorkspaceRow } from './workspace.js';

const LOCKS_WORK = readSql(import.meta.url, 'statements/locks-work.sql');

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
  await state.transaction(() => state.run(LOCKS_WORK, { device }));
}
