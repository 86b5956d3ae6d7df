import { messageOf, StorageError } from '../errors.js';

/** The one command that puts a live database right that is missing, damaged or older than it should be. */
export const RESTORE =
  'Put the newest whole state back: readership restore (with --config, --sandbox or --shard, if this command has them)';

/** What can be wrong beneath a database file, by the words of DuckDB, Node.js or the system; the first that fits. */
const SIGNS = [
  ['full', /No space left|ENOSPC|Disk quota|EDQUOT|File too large|EFBIG/],
  // Where Node.js makes directories one in another, it says ENOENT for a file system that is read-only.
  ['denied', /Permission denied|EACCES|Read-only file system|EROFS|EPERM|ENOENT.*, mkdir/],
  ['damaged', /Corrupt|not a valid DuckDB database|Could not read enough bytes|while replaying WAL/],
  ['failed', /^(IO|FATAL|INTERNAL|Serialization|TransactionContext|Out of Memory) Error/],
] as const;

const signOf = (error: unknown) => SIGNS.find(([, sign]) => sign.test(messageOf(error)))?.[0];

/** Whether an error is of the disk or the file, not of what was asked. */
export const isOfStorage = (error: unknown): boolean => signOf(error) !== undefined;

/** Whether an error says that a file is not what was written to it. */
export const isOfDamage = (error: unknown): boolean => signOf(error) === 'damaged';

/** A failure to do something, of the disk or of a database file, with what to do about it. */
export function storageFailure(doing: string, cause: unknown): StorageError {
  if (cause instanceof StorageError) return cause;
  const advice = adviceFor(signOf(cause) ?? 'failed');
  return new StorageError(`Cannot ${doing}: ${messageOf(cause)}\n${advice}`, { cause });
}

function adviceFor(sign: (typeof SIGNS)[number][0]): string {
  switch (sign) {
    case 'full':
      return 'The disk is full: free some space, then run the command again.';
    case 'denied':
      return 'Let this user write there, or set dataDir to a directory that it may write.';
    case 'damaged':
      return `It is damaged. Nothing was changed. ${RESTORE}`;
    case 'failed':
      return 'Run the command again; if it fails again: readership doctor';
  }
}

/** Whether an error says that another process has the file open. */
export const isHeldElsewhere = (error: unknown): boolean =>
  messageOf(error).includes('Could not set lock on file');
