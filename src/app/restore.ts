import { resolve } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, expectDirectory, makeDirectory } from '../files.js';
import { lockData } from '../state/lock.js';
import { openState } from '../state/open.js';
import { findState, isToReplace, type ReadyState, type RestoredState, writeState } from '../state/restore.js';
import type { SavedState } from '../state/saved.js';
import type { State } from '../state/state.js';
import type { HoldOptions } from '../warehouse/open.js';
import { expectSchema } from '../warehouse/published.js';
import { removeEmpty, restore, type Restored, stateToRestore } from '../warehouse/restore.js';
import type { Workspace } from './workspace.js';

/** What was done to the live database and to the state; undefined for one that was kept as it was. */
export interface RestoredStores {
  readonly live: Restored | undefined;
  readonly state: RestoredState | undefined;
}

/**
 * Restores the live database and the state from a history: from `from`, or, as far as they are missing, damaged or
 * behind, from the published one. Holds the worker's lock. Throws a `StorageError`, with nothing changed, if that is not
 * possible.
 */
export async function restoreStores(
  workspace: Workspace,
  from: string | undefined,
  options: HoldOptions,
): Promise<RestoredStores> {
  const { dataDir, liveFile, historyFile } = workspace;
  await expectDirectory(dataDir);
  const restoration = { liveFile, historyFile, from };
  const saved = await savedState(workspace, from);
  const made = await makeDirectory(dataDir);
  const lock = await inTurn(dataDir, options);
  let ready: ReadyState | undefined;
  try {
    const found = await findState(dataDir);
    const source = resolve(from ?? historyFile);
    if (saved === undefined && found.is !== 'sound') {
      await expectSchema(source);
      throw new StorageError(
        `${source} carries no state, and the one in ${dataDir} is ${found.is}. Nothing was changed. Use a history.duckdb: readership restore --from FILE`,
      );
    }
    if (saved !== undefined && isToReplace(found, saved, { source, witness: workspace.witness }))
      ready = writeState(dataDir, saved, source);
    const live = await restore(restoration, options);
    const stamp = options.now().toISOString().slice(0, 19).replaceAll(':', '-');
    const state = await ready?.putInPlace(stamp);
    lock.release();
    return { live, state };
  } catch (error) {
    ready?.discard();
    if (made === undefined) lock.release();
    else {
      lock.remove();
      await removeEmpty(dataDir, made);
    }
    throw error;
  }
}

/** The state that the file to restore from carries. A published history that is not needed may be missing or damaged. */
export async function savedState(
  { dataDir, liveFile, historyFile }: Workspace,
  from: string | undefined,
): Promise<SavedState | undefined> {
  const isNeeded = from !== undefined || (await findState(dataDir)).is !== 'sound';
  if (!isNeeded && !(await exists(historyFile))) return undefined;
  return stateToRestore({ liveFile, historyFile, from }).catch((error: unknown) => {
    if (isNeeded) throw error;
    return undefined;
  });
}

/** Takes the lock; the state, if it can be opened, names a process that holds it. */
async function inTurn(dataDir: string, options: HoldOptions) {
  let state: State | undefined;
  try {
    state = await openState(dataDir).catch(() => undefined);
    return await lockData(dataDir, state, options);
  } finally {
    state?.close();
  }
}
