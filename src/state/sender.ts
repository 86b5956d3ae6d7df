import { z } from 'zod';
import { readSql } from '../columns.js';
import { messageOf, StorageError } from '../errors.js';
import { sleepFor } from '../sleep.js';
import { counted } from '../format/numbers.js';
import type { Worker } from './lock.js';
import type { OtherPlaceError, SendingPlace } from './place.js';
import type { SavedState } from './saved.js';
import type { State } from './state.js';
import { readWitness, writeWitness } from './witness.js';
import { otherPlace, readWorkspaceRow } from './workspace.js';

const BEGIN_ATTEMPT = readSql(import.meta.url, 'statements/begin-attempt.sql');

/** Proof that an attempt is recorded. Only a sender creates one, and nothing is sent without it. */
class RecordedAttempt {
  constructor(readonly number: number) {}
}
export type Attempt = RecordedAttempt;

/** What the state that a history carries knows. */
type Carried = Pick<SavedState, 'workspace' | 'attempt'>;

export interface SenderOptions {
  readonly state: State;
  readonly worker: Worker;
  readonly here: SendingPlace;
  /** The path of the witness; undefined for the built-in sandbox, which has nobody to send to. */
  readonly witness: string | undefined;
  /** Reads what the state that the history carries knows; undefined if there is none. */
  readonly carried?: () => Promise<Carried | undefined>;
  /** Why nothing may be sent now, as far as it is not known from the state; undefined if it may. */
  readonly whyNot: () => Promise<Error | undefined>;
}

/** Why the state does not know everything that was sent, if so. */
export function whyIncomplete({
  state,
  witness,
  carried,
}: Pick<SenderOptions, 'state' | 'witness'> & {
  readonly carried?: Carried | undefined;
}): StorageError | undefined {
  if (witness === undefined) return undefined;
  const problem = ofOtherWorkspace(state, witness) ?? whyBehind(state, carried);
  if (problem !== undefined) return problem;
  const { attempt } = readWorkspaceRow(state);
  const seen = readWitness(witness);
  if (seen === undefined || seen.attempt <= attempt) return undefined;
  return new StorageError(
    `${state.path} is older than what this workspace has sent: it knows ${counted(attempt, 'attempt')} to send something, and ${witness} ${seen.attempt}. ` +
      'Nothing was sent. Restore the newest state: readership restore --from FILE. If there is none: readership adopt',
  );
}

/** Why the state that the history carries is not an earlier one of this state, if so. */
export function whyBehind(state: State, carried: Carried | undefined): StorageError | undefined {
  if (carried === undefined) return undefined;
  const { id, attempt } = readWorkspaceRow(state);
  if (carried.workspace !== id)
    return new StorageError(
      `The history belongs to another workspace than ${state.path}. Nothing was sent. ` +
        'Put the right data directory there, or move the history away.',
    );
  if (carried.attempt <= attempt) return undefined;
  return new StorageError(
    `${state.path} is older than the history: it knows ${counted(attempt, 'attempt')} to send something, and the history ${carried.attempt}. ` +
      'Nothing was sent. To restore the newer state from the history: readership restore',
  );
}

/** The error for a state and a witness that do not belong together; undefined if they do. */
export function ofOtherWorkspace(state: State, witness: string): StorageError | undefined {
  const seen = readWitness(witness);
  if (seen === undefined || seen.workspace === readWorkspaceRow(state).id) return undefined;
  return new StorageError(
    `${witness} belongs to another workspace than ${state.path}, so the state of another one was put there. Nothing was sent. ` +
      'Put the right data directory there. To go on with this one, delete that file.',
  );
}

/** Begins every attempt to send a job, a message or an email, so that each is recorded before, and never repeated. */
export class Sender {
  #carried: Promise<Carried | undefined> | undefined;

  constructor(private readonly options: SenderOptions) {}

  /** Why nothing may be sent now; undefined if it may. */
  async refusal(): Promise<Error | undefined> {
    try {
      return (
        this.otherPlace() ?? (await this.options.whyNot()) ?? this.#incomplete(await this.#readCarried())
      );
    } catch (error) {
      if (error instanceof StorageError) return error;
      throw error;
    }
  }

  /** The error that says which place sends, if it is another one; undefined if it is this one. */
  otherPlace(): OtherPlaceError | undefined {
    const { state, here, witness } = this.options;
    return witness === undefined ? undefined : otherPlace(state, here);
  }

  /**
   * Begins an attempt: `mark` stores what is sent as being sent, with the number of the attempt, and the witness learns
   * that number. Returns undefined if `mark` answers false, because it must not be sent. If the witness cannot be
   * written, `unmark` stores that nothing was sent. Throws a `StorageError` then, and if nothing may be sent from here.
   */
  async begin(
    now: Date,
    mark: (attempt: number) => boolean,
    unmark: () => void,
  ): Promise<Attempt | undefined> {
    const { state, worker, witness } = this.options;
    const carried = await this.#readCarried();
    let number = 0;
    const mayBeSent = await state
      .transaction(() => {
        worker.expectCurrent();
        const refusal = this.otherPlace() ?? this.#incomplete(carried);
        if (refusal !== undefined) throw refusal;
        number = state.get(BEGIN_ATTEMPT, z.object({ attempt: z.int() }), { now })?.attempt ?? 0;
        if (mark(number)) return true;
        throw new NotToBeSent();
      })
      .catch((error: unknown) => {
        if (error instanceof NotToBeSent) return false;
        throw error;
      });
    if (!mayBeSent) return undefined;
    try {
      if (witness !== undefined)
        writeWitness(witness, { workspace: readWorkspaceRow(state).id, attempt: number });
    } catch (error) {
      // If that fails as well, the row stays as it is, and the next worker finds it of unknown outcome.
      await state.transaction(unmark).catch(() => undefined);
      throw error;
    }
    return new RecordedAttempt(number);
  }

  #incomplete(carried: Carried | undefined): StorageError | undefined {
    const { state, witness } = this.options;
    return whyIncomplete({ state, witness, carried });
  }

  /** Once for all attempts: only whoever sends writes the history. */
  #readCarried(): Promise<Carried | undefined> {
    return (this.#carried ??= this.options.carried?.() ?? Promise.resolve(undefined));
  }
}

/** Rolls the transaction back. */
class NotToBeSent extends Error {}

const RETRY_DELAY_MS = 1_000;
/** How often it is tried to store an outcome, such as on a full disk. */
const MAX_RETRIES = 600;

/**
 * Stores the outcome of an attempt, which must not be lost: after a failure, it is tried again until it succeeds, or the
 * process is told to end.
 */
export async function storeOutcome<Result>(
  state: State,
  work: () => Result,
  signal: AbortSignal | undefined,
): Promise<Result> {
  for (let retries = 0; ; retries++) {
    try {
      return await state.transaction(work);
    } catch (error) {
      if (!(error instanceof StorageError) || retries === MAX_RETRIES || signal?.aborted === true)
        throw new StorageError(
          `Something was sent, but its outcome could not be stored: ${messageOf(error)} It counts as unknown.`,
          { cause: error },
        );
    }
    await sleepFor(RETRY_DELAY_MS, signal).catch(() => undefined);
  }
}
