import { z } from 'zod';
import { readSql } from '../columns.js';
import { messageOf, StorageError } from '../errors.js';
import { sleepFor } from '../sleep.js';
import { recordChange } from './jobs.js';
import type { Worker } from './lock.js';
import type { State } from './state.js';
import { type LastAttempt, whyIncomplete, writeWitness } from './witness.js';
import { otherPlace, type OtherPlaceError, readWorkspaceRow, type SendingPlace } from './workspace.js';

const END_KILLED = readSql(import.meta.url, 'statements/end-killed.sql');
const PRUNE_RUNS = readSql(import.meta.url, 'statements/prune-runs.sql');
const BEGIN_ATTEMPT = 'UPDATE workspace SET attempt = attempt + 1, attempted_at = $now RETURNING attempt';
const JOBS_TO_UNKNOWN =
  "UPDATE jobs SET state = 'unknown', note = $note WHERE state = 'sending' RETURNING id AS job";
const MESSAGES_TO_UNKNOWN =
  "UPDATE messages SET state = 'unknown', note = $note WHERE state = 'sending' RETURNING job, id AS message";
const EMAILS_TO_UNKNOWN =
  "UPDATE emails SET state = 'unknown', settled_at = $now, note = $note WHERE state = 'sending'";

/** Proof that an attempt is recorded. Only a sender creates one, and nothing is sent without it. */
class RecordedAttempt {
  constructor(readonly number: number) {}
}
export type Attempt = RecordedAttempt;

interface SenderOptions {
  readonly state: State;
  readonly worker: Worker;
  readonly here: SendingPlace;
  /** The path of the witness; undefined for the built-in sandbox, which has nobody to send to. */
  readonly witness: string | undefined;
  /** Reads what the state that the history carries knows; undefined if there is none. */
  readonly carried?: () => Promise<LastAttempt | undefined>;
  /** Why nothing may be sent now, as far as it is not known from the state; undefined if it may. */
  readonly whyNot: () => Promise<Error | undefined>;
}

/** Begins every attempt to send a job, a message or an email, so that each is recorded before, and never repeated. */
export class Sender {
  #carried: Promise<LastAttempt | undefined> | undefined;

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

  #incomplete(carried: LastAttempt | undefined): StorageError | undefined {
    const { state, witness } = this.options;
    return whyIncomplete({ state, witness, carried });
  }

  /** Once for all attempts: only whoever sends writes the history. */
  #readCarried(): Promise<LastAttempt | undefined> {
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

const INTERRUPTED = 'the process ended before the reply was recorded';

/** How many jobs, messages and emails were found to be of unknown outcome. */
export interface Recovered {
  readonly jobs: number;
  readonly messages: number;
  readonly emails: number;
}

/**
 * Records what became of the work of a process that was killed: what it was sending is of unknown outcome, and its steps
 * were interrupted. Called by each new worker, before anything else.
 */
export const recover = (state: State, worker: Worker, now: Date): Promise<Recovered> =>
  state.transaction(() => {
    worker.expectCurrent();
    const values = { now, note: INTERRUPTED };
    const jobs = state.all(JOBS_TO_UNKNOWN, z.object({ job: z.int() }), values);
    const messages = state.all(MESSAGES_TO_UNKNOWN, z.object({ job: z.int(), message: z.int() }), values);
    for (const change of [...jobs, ...messages])
      recordChange(state, {
        message: null,
        ...change,
        now,
        from: 'sending',
        to: 'unknown',
        cause: INTERRUPTED,
      });
    const emails = state.run(EMAILS_TO_UNKNOWN, values);
    state.run(END_KILLED, { now });
    state.run(PRUNE_RUNS);
    return { jobs: jobs.length, messages: messages.length, emails };
  });
