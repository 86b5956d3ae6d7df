import { dirname } from 'node:path';
import { messageOf, ReadershipError, StorageError } from './errors.js';

/** Storage problems by the error messages of DuckDB, Node.js or the system; the first match counts. */
const SIGNS = [
  ['files', /EMFILE|ENFILE|Too many open files/],
  [
    'memory',
    /ENOMEM|Cannot allocate memory|failed to map segment|Out of Memory|(array buffer )?allocation failed|bad_alloc/i,
  ],
  ['failing', /disk I\/O error|\bEIO\b|Input\/output error|fsync failed/],
  ['held', /Conflicting lock is held/],
  ['mounted', /EBUSY: .*rename/],
  ['lockless', /Could not set lock on file|locking protocol/],
  ['elsewhere', /uv_cwd/],
  ['incomplete', /^Cannot find (module|package)|GLIBC_|Error loading shared library/],
  ['full', /No space left|database or disk is full|ENOSPC|Disk quota|EDQUOT|File too large|EFBIG/],
  [
    'denied',
    /readonly database|unable to open database file|Permission denied|EACCES|Read-only file system|EROFS|EPERM/,
  ],
  [
    'damaged',
    /database disk image is malformed|file is not a database|Corrupt|not a valid DuckDB database|Could not read enough bytes|while replaying WAL/,
  ],
  ['failed', /^(IO|FATAL|INTERNAL|Serialization|TransactionContext|Out of Memory) Error/],
] as const;

/** What to do about each kind of problem. */
const ADVICE: Readonly<Record<(typeof SIGNS)[number][0], string>> = {
  full: 'The disk is full: free some space, then run the command again.',
  denied: 'Give this user write access there, or set dataDir to a directory it can write to.',
  damaged: 'It is damaged. Nothing was changed. Restore a backup: readership restore --from FILE',
  files:
    'Too many files are open: raise the limit (ulimit -n, or LimitNOFILE= in systemd), then run the command again.',
  memory: 'There is too little memory: close other programs, then run the command again.',
  mounted:
    'A file that is mounted on its own cannot be replaced: mount the directory that it is in, then run the command again.',
  held: 'Close the program that has the file open, then run the command again.',
  lockless:
    'The file system there has no working locks, as with some NFS and SMB mounts: set dataDir to a directory on a local disk.',
  elsewhere: 'The current directory was removed, or this user may not enter it: change to another one.',
  incomplete:
    'Readership is not completely installed for this machine: install it again here, without omitting optional packages.',
  failing:
    'The disk reports errors: check it (dmesg, smartctl), copy data/ to another one, then run the command again.',
  failed: 'Run the command again; if it fails again: readership doctor',
};

/** The program in DuckDB's words, such as `/usr/bin/python3 (PID 1234) by user alice`. */
const HOLDER = /Conflicting lock is held in (.+?)\. See/;

const signOf = (error: unknown) => SIGNS.find(([, sign]) => sign.test(messageOf(error)))?.[0];

/** Whether an error says that a file is corrupt. */
export const isOfDamage = (error: unknown): boolean => signOf(error) === 'damaged';

/** What to do if this machine is the problem, whatever was being done; undefined otherwise. */
export function machineAdvice(error: unknown): string | undefined {
  const sign = signOf(error);
  const isOfFile = sign === 'denied' || sign === 'damaged' || sign === 'failed';
  return sign === undefined || isOfFile ? undefined : ADVICE[sign];
}

/** What a command says about an error: its message, with what to do if this machine is the problem; undefined for a bug. */
export function errorWords(error: unknown): string | undefined {
  if (error instanceof ReadershipError) return error.message;
  const advice = signOf(error) === 'denied' ? ADVICE.denied : machineAdvice(error);
  return advice === undefined ? undefined : `${messageOf(error)}\n${advice}`;
}

/** A failure of the disk or a database file, with advice. */
export function storageFailure(doing: string, cause: unknown): StorageError {
  if (cause instanceof StorageError) return cause;
  const [, holder] = HOLDER.exec(messageOf(cause)) ?? [];
  const reason = holder === undefined ? messageOf(cause) : `${holder} has the file open.`;
  const advice = ADVICE[signOf(cause) ?? 'failed'];
  return new StorageError(`Cannot ${doing}: ${reason}\n${advice}`, { cause });
}

/** DuckDB's advice to load an extension, or to change settings for that: both are locked while a query runs. */
const OF_EXTENSION = / is not in the catalog, but it exists in the (\w+) extension\.[^]*/;

/** An error of a query. One about an extension gets words that help here. */
export function queryError(error: unknown): unknown {
  const words = messageOf(error);
  if (!OF_EXTENSION.test(words)) return error;
  const ours = words.replace(
    OF_EXTENSION,
    " is in DuckDB's extension $1, which queries here cannot load. With DuckDB itself they can: docs/readers.md",
  );
  return new Error(ours, { cause: error });
}

/** What to do in a workspace of Readership 0.4. */
export const of04 = (database: string): string =>
  `Readership 0.4 wrote the files in ${dirname(database)}, which were not changed. To go on with them: readership restore --from ${database}`;
