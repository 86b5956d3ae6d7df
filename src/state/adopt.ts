import { readSql } from '../columns.js';
import type { SendingPlace } from './place.js';
import type { SavedState } from './saved.js';
import { ofOtherWorkspace, type SenderOptions, whyBehind } from './sender.js';
import { readWitness, writeWitness } from './witness.js';
import { readWorkspaceRow } from './workspace.js';

const ADOPT = readSql(import.meta.url, 'statements/adopt.sql');

/** Numbers of attempts to send something of which the state knows nothing, both included. */
export interface UnknownAttempts {
  readonly first: number;
  readonly last: number;
}

/**
 * Makes a place the one that sends, and this state the one that counts: if the witness knows more attempts, the state
 * takes over their number. Returns those that it does not know. Throws a `StorageError` if the
 * history carries a newer state, which can be restored, if the witness or that history belongs to another workspace, or
 * if the witness cannot be written.
 */
export async function adopt(
  { state, worker, witness }: Pick<SenderOptions, 'state' | 'worker' | 'witness'>,
  here: SendingPlace,
  carried?: Pick<SavedState, 'workspace' | 'attempt'>,
): Promise<UnknownAttempts | undefined> {
  const seen = witness === undefined ? undefined : readWitness(witness);
  const { id, attempt } = readWorkspaceRow(state);
  const problem =
    witness === undefined ? undefined : (ofOtherWorkspace(state, witness) ?? whyBehind(state, carried));
  if (problem !== undefined) throw problem;
  const last = Math.max(attempt, seen?.attempt ?? 0);
  await state.transaction(() => {
    worker.expectCurrent();
    state.run(ADOPT, { machine: here.machine, host: here.host, path: here.path, attempt: last });
  });
  if (witness !== undefined) writeWitness(witness, { workspace: id, attempt: last });
  return last === attempt ? undefined : { first: attempt + 1, last };
}
