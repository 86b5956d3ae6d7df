import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { State } from './state.js';
import { readWorkspaceRow } from './workspace.js';

/** A copy of a state, as the history carries it: the bytes of a SQLite file, and what they belong to. */
export interface SavedState {
  /** The id of the workspace. */
  readonly workspace: string;
  /** The number of its last attempt to send something. */
  readonly attempt: number;
  /** How often jobs, messages, emails and skips had changed. */
  readonly changes: number;
  readonly database: Uint8Array;
}

/** Copies a state. Called by the worker, beside whose file at `path` the copy is for a moment. */
export function saveState(state: State, path: string): SavedState {
  const copy = `${path}.state`;
  // A process that was killed may have left one.
  rmSync(copy, { force: true });
  try {
    const { id, attempt, changes } = readWorkspaceRow(state);
    state.copyTo(copy);
    return { workspace: id, attempt, changes, database: readFileSync(copy) };
  } finally {
    rmSync(copy, { force: true });
  }
}

/** Writes a copy to a new, private file, and to disk. */
export function writeSaved({ database }: SavedState, path: string): void {
  writeFileSync(path, database, { mode: 0o600, flag: 'wx', flush: true });
}
