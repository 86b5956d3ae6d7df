import { join } from 'node:path';
import { SchemaError, StorageError } from '../errors.js';
import { of04 } from '../storage.js';
import { exists } from '../files.js';
import type { History } from '../history/history.js';
import { emptyState, missingState, openState } from '../state/open.js';
import { hasHistory, otherPlace, placeOf } from '../state/workspace.js';
import type { State } from '../state/state.js';
import { readTables } from '../state/copies.js';
import { readWitness } from '../state/witness.js';
import type { Workspace } from './workspace.js';

/**
 * Runs `work` with the state alone, to read it, or to record a decision; with an empty one before anything was loaded.
 * Throws a `StorageError` if it is missing since.
 */
export async function withState<Result>(
  workspace: Workspace,
  work: (state: State) => Result | Promise<Result>,
): Promise<Result> {
  let state = await openState(workspace.dataDir);
  if (state === undefined) {
    await expectNothingLost(workspace);
    state = emptyState();
  }
  try {
    return await work(state);
  } finally {
    state.close();
  }
}

/** What is read without waiting for anyone: the history, and the state as it is now. */
interface ReadStores {
  readonly history: History;
  readonly state: State;
}

/** Runs `work` with the history and the state, which other processes cannot block. */
export async function withHistory<Result>(
  workspace: Workspace,
  work: (stores: ReadStores) => Promise<Result>,
): Promise<Result> {
  // Loading DuckDB takes long, and what needs the state alone does without.
  const { openOwnHistory } = await import('../history/history.js');
  return withState(workspace, async (state) => {
    await expectHistory(workspace, state);
    const history = await openOwnHistory(workspace.historyFile);
    try {
      await history.show(readTables(state));
      return await work({ history, state });
    } finally {
      history.close();
    }
  });
}

/** Throws a `StorageError` if there should be a state: of an older version, beside a history, or for the witness. */
export async function expectNothingLost({
  dataDir,
  historyFile,
  witness,
}: Pick<Workspace, 'dataDir' | 'historyFile' | 'witness'>): Promise<void> {
  const database = join(dataDir, 'warehouse.duckdb');
  if (await exists(database)) throw new SchemaError(of04(database));
  if (!(await exists(historyFile))) {
    expectNoWitness(dataDir, witness);
    return;
  }
  const { openHistory } = await import('../history/history.js');
  // Another version has another way out; a damaged history is no news here.
  const history = await openHistory(historyFile).catch((error: unknown) => {
    if (error instanceof SchemaError) throw error;
  });
  history?.close();
  throw missingState(dataDir);
}

function expectNoWitness(dataDir: string, witness: string | undefined): void {
  if (witness === undefined || readWitness(witness) === undefined) return;
  throw new StorageError(
    `${dataDir} has no state, although this workspace has sent jobs or emails: they would be sent again. Nothing was changed.\n` +
      'If the directory was moved, or its disk is not mounted, correct that. To restore a backup: readership restore --from FILE\n' +
      `To start over: rm '${witness}'`,
  );
}

/** Throws a `StorageError` if the history is missing although days were loaded: they are not silently loaded again. */
export async function expectHistory(
  { historyFile }: Pick<Workspace, 'historyFile'>,
  state: State,
): Promise<void> {
  if (!hasHistory(state) || (await exists(historyFile))) return;
  throw new StorageError(
    `The history ${historyFile} is missing, although days were loaded. Nothing was changed.\n` +
      'Restore a backup: readership restore --from FILE\nOr load again what the platform still has: readership export --reload',
  );
}

/** Throws an `OtherPlaceError` in a copy of a workspace, which sends nothing. */
export async function expectSendingPlace(
  state: State,
  { dataDir, machine, witness }: Workspace,
): Promise<void> {
  if (witness === undefined) return;
  const refusal = otherPlace(state, await placeOf(dataDir, machine));
  if (refusal !== undefined) throw refusal;
}

/** Who sends what was planned while another worker holds the lock. */
export const SENT_LATER = 'The next run sends it, or readership start within a minute.';
