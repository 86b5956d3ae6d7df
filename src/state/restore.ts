import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { State } from './state.js';
import { readWorkspaceRow } from './workspace.js';
import { StorageError } from '../errors.js';
import { exists, nextOf, syncToDisk } from '../files.js';
import { storageFailure } from '../storage.js';
import { DamagedStateError, openDatabase } from './database.js';
import { openState, stateFileIn } from './open.js';
import { readWitness } from './witness.js';
import { type SavedState, writeSaved } from './copies.js';

/** The state that is in a data directory: a sound one, or why there is none. */
export type FoundState =
  | { readonly is: 'sound'; readonly workspace: string; readonly attempt: number }
  | { readonly is: 'missing' | 'damaged' };

/** Looks at the state of a data directory. Throws a `StorageError` for what a restored one would not repair. */
export async function findState(dataDir: string): Promise<FoundState> {
  try {
    const state = await openState(dataDir);
    if (state === undefined) return { is: 'missing' };
    try {
      state.expectSound();
      const { id, attempt } = readWorkspaceRow(state);
      return { is: 'sound', workspace: id, attempt };
    } finally {
      state.close();
    }
  } catch (error) {
    if (error instanceof DamagedStateError) return { is: 'damaged' };
    throw error;
  }
}

/**
 * Whether the state that a history carries is to replace the one that was found. A sound one that knows at least as many
 * attempts is kept: an older one would send again what it does not know. Throws a `StorageError` if the history belongs
 * to another workspace.
 */
export function isToReplace(
  found: FoundState,
  saved: SavedState,
  { source, witness }: { readonly source: string; readonly witness: string | undefined },
): boolean {
  const seen = witness === undefined ? undefined : readWitness(witness);
  const known = seen?.workspace ?? (found.is === 'sound' ? found.workspace : saved.workspace);
  if (known !== saved.workspace)
    throw new StorageError(
      `${source} and ${seen === undefined ? 'the state here' : witness} belong to different workspaces. Nothing was changed. ` +
        'Use a history of this workspace: readership restore --from FILE',
    );
  return found.is !== 'sound' || found.workspace !== saved.workspace || found.attempt < saved.attempt;
}

/** A state that was restored, and where its previous file is now; undefined if there was none. */
export interface RestoredState {
  readonly path: string;
  readonly aside: string | undefined;
}

/** A restored state, complete and on disk, that is not in place yet. */
interface ReadyState {
  readonly putInPlace: (stamp: string) => Promise<RestoredState>;
  readonly discard: () => void;
}

/** Writes the state that a history carries beside the one of a data directory. Throws a `StorageError` if it is damaged. */
export function writeState(dataDir: string, saved: SavedState, source: string): ReadyState {
  const path = stateFileIn(dataDir);
  const next = `${nextOf(path)}${process.pid}`;
  const discard = () => {
    rmSync(next, { force: true });
  };
  discard();
  try {
    writeSaved(saved, next);
    expectSound(next, saved);
  } catch (error) {
    discard();
    if (error instanceof DamagedStateError)
      throw new StorageError(
        `Cannot restore from ${source}: the state that it carries is damaged. Nothing was changed. Use another file: readership restore --from FILE`,
        { cause: error },
      );
    throw storageFailure(`restore from ${source}`, error);
  }
  const putInPlace = async (stamp: string) => {
    const aside = await freeName(`${path}.replaced-${stamp}`);
    const isThere = await exists(path);
    // A journal that a killed process left belongs to the file beside it. Without its database, it is no danger.
    if (isThere) renameSync(path, aside);
    if (await exists(journalOf(path))) renameSync(journalOf(path), journalOf(aside));
    renameSync(next, path);
    await syncToDisk(dirname(path));
    return { path, aside: isThere ? aside : undefined };
  };
  return { putInPlace, discard };
}

const journalOf = (path: string): string => `${path}-journal`;

function expectSound(path: string, { workspace, attempt }: SavedState): void {
  const state = new State(path, openDatabase(path));
  try {
    state.expectSound();
    const row = readWorkspaceRow(state);
    if (row.id !== workspace || row.attempt !== attempt)
      throw new DamagedStateError(`${path} is not the state that the history names`);
  } finally {
    state.close();
  }
}

async function freeName(wanted: string): Promise<string> {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!(await exists(name)) && !(await exists(journalOf(name)))) return name;
  }
}
