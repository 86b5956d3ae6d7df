import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf, StorageError } from '../errors.js';
import { counted } from '../format/numbers.js';
import { machineAdvice } from '../storage.js';
import type { Worker } from './lock.js';
import type { State } from './state.js';
import { readWorkspaceRow, type SendingPlace } from './workspace.js';

const ADOPT =
  'UPDATE workspace SET machine = $machine, host = $host, path = $path, attempt = max(attempt, $attempt)';

/**
 * The witness: a file beside the configuration with the id of its workspace and the number of its last attempt to send
 * something. It lies outside the data directory, which may be lost with its disk, or replaced by an older copy.
 */
export const witnessOf = (configFile: string): string =>
  join(dirname(configFile), `.${basename(configFile)}.sent`);

/** The last attempt to send something that the witness, or the state that a history carries, knows of a workspace. */
const lastAttempt = z.object({ workspace: z.string(), attempt: z.int() });
export type LastAttempt = Readonly<z.infer<typeof lastAttempt>>;

/** What the witness says; undefined if there is none. Throws a `StorageError` if it cannot be read. */
export function readWitness(path: string): LastAttempt | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw unreadable(path, messageOf(error), error);
  }
  // Its writer was killed, or the disk was full.
  if (text === '') return undefined;
  try {
    return lastAttempt.parse(JSON.parse(text.split('\n', 1)[0] ?? ''));
  } catch (error) {
    throw unreadable(path, 'it does not contain the id of a workspace and the number of an attempt', error);
  }
}

const unreadable = (path: string, why: string, cause: unknown): StorageError =>
  new StorageError(
    `Cannot read ${path}, which shows whether the state is complete: ${why}. Nothing was sent.\n` +
      'Restore that file from a backup. If you are sure that data/ is the newest state, delete it: it is written again.',
    { cause },
  );

/** Codes of a directory in which this user may not create files. */
const NOT_WRITABLE = ['EACCES', 'EPERM', 'EROFS'];

/**
 * Writes the witness to disk. Returns whether it is there: its directory may be read-only, as in containers. Throws a
 * `StorageError` after any other failure.
 */
export function writeWitness(path: string, { workspace, attempt }: LastAttempt): boolean {
  const text =
    `${JSON.stringify({ workspace, attempt })}\n` +
    'The last attempt of this workspace to send an agent job, a message or an email. If data/ is lost or replaced by\n' +
    'an older copy, this file prevents Readership from sending anything again. Delete it only to start over.\n';
  let file: number;
  try {
    // It is written in place, because a single file that is mounted into a container cannot be replaced.
    file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  } catch (error) {
    if (NOT_WRITABLE.includes(codeOf(error) ?? '') && readWitness(path) === undefined) return false;
    throw unwritable(path, error);
  }
  try {
    const wasEmpty = fstatSync(file).size === 0;
    // The beginning of a text would be refused as damaged.
    if (writeSync(file, text, 0) < Buffer.byteLength(text)) {
      if (wasEmpty) ftruncateSync(file, 0);
      throw new Error('ENOSPC: no space left on device');
    }
    ftruncateSync(file, Buffer.byteLength(text));
    fsyncSync(file);
    return true;
  } catch (error) {
    throw unwritable(path, error);
  } finally {
    closeSync(file);
  }
}

const unwritable = (path: string, cause: unknown): StorageError =>
  new StorageError(
    `Cannot write ${path}, which must be written before anything is sent: ${messageOf(cause)}. Nothing was sent. ` +
      (machineAdvice(cause) ?? 'Give this user write access to that file, then run the command again.'),
    { cause },
  );

/** A state, and what tells whether it is the newest one. */
interface Witnessed {
  readonly state: State;
  /** The path of the witness; undefined for the built-in sandbox, which has nobody to send to. */
  readonly witness: string | undefined;
  /** What the state that the history carries knows. */
  readonly carried?: LastAttempt | undefined;
}

/** Why the state does not know everything that was sent, if so. */
export function whyIncomplete(given: Witnessed): StorageError | undefined {
  const { state, witness } = given;
  const seen = witness === undefined ? undefined : readWitness(witness);
  const problem = whyNotAdoptable(given, seen);
  if (problem !== undefined) return problem;
  const { attempt } = readWorkspaceRow(state);
  if (seen === undefined || seen.attempt <= attempt) return undefined;
  return new StorageError(
    `${state.path} is older than what this workspace has sent: it knows ${counted(attempt, 'attempt')} to send something, and ${witness} ${seen.attempt}. ` +
      'Nothing was sent. Restore the newest state: readership restore --from FILE. If there is none: readership adopt',
  );
}

/** Why the state cannot count as the newest one, whatever the number of the witness. */
function whyNotAdoptable(
  { state, witness, carried }: Witnessed,
  seen: LastAttempt | undefined,
): StorageError | undefined {
  if (witness === undefined) return undefined;
  const { id, attempt } = readWorkspaceRow(state);
  if (seen !== undefined && seen.workspace !== id)
    return new StorageError(
      `${witness} belongs to another workspace than ${state.path}, so the state of another one was put there. Nothing was sent. ` +
        'Put the right data directory there. To go on with this one, delete that file.',
    );
  if (carried === undefined) return undefined;
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

/** Numbers of attempts to send something of which the state knows nothing, both included. */
interface UnknownAttempts {
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
  { worker, ...given }: Witnessed & { readonly worker: Worker },
  here: SendingPlace,
): Promise<UnknownAttempts | undefined> {
  const { state, witness } = given;
  const seen = witness === undefined ? undefined : readWitness(witness);
  const problem = whyNotAdoptable(given, seen);
  if (problem !== undefined) throw problem;
  const { id, attempt } = readWorkspaceRow(state);
  const last = Math.max(attempt, seen?.attempt ?? 0);
  await state.transaction(() => {
    worker.expectCurrent();
    state.run(ADOPT, { machine: here.machine, host: here.host, path: here.path, attempt: last });
  });
  if (witness !== undefined) writeWitness(witness, { workspace: id, attempt: last });
  return last === attempt ? undefined : { first: attempt + 1, last };
}
