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
import { machineAdvice } from '../storage.js';

/**
 * The witness: a file beside the configuration with the id of its workspace and the number of its last attempt to send
 * something. It lies outside the data directory, which may be lost with its disk, or replaced by an older copy.
 */
export const witnessOf = (configFile: string): string =>
  join(dirname(configFile), `.${basename(configFile)}.sent`);

const witnessSchema = z.object({ workspace: z.string(), attempt: z.int() });
type Witness = Readonly<z.infer<typeof witnessSchema>>;

/** What the witness says; undefined if there is none. Throws a `StorageError` if it cannot be read. */
export function readWitness(path: string): Witness | undefined {
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
    return witnessSchema.parse(JSON.parse(text.split('\n', 1)[0] ?? ''));
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
export function writeWitness(path: string, { workspace, attempt }: Witness): boolean {
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
