import { describe, expect, it } from 'vitest';
import { StorageError } from '../src/errors.js';
import { errorWords, isOfDamage, storageFailure } from '../src/storage.js';

const PATH = '/srv/docs/history.duckdb';

const FULL = 'The disk is full: free some space, then run the command again.';
const DENIED = 'Give this user write access there, or set dataDir to a directory it can write to.';
const DAMAGED = 'It is damaged. Nothing was changed. Restore a backup: readership restore --from FILE';
const FAILED = 'Run the command again; if it fails again: readership doctor';

const FILES =
  'Too many files are open: raise the limit (ulimit -n, or LimitNOFILE= in systemd), then run the command again.';
const MEMORY = 'There is too little memory: close other programs, then run the command again.';
const ELSEWHERE = 'The current directory was removed, or this user may not enter it: change to another one.';
const INCOMPLETE =
  'Readership is not completely installed for this machine: install it again here, without omitting optional packages.';
const FAILING =
  'The disk reports errors: check it (dmesg, smartctl), copy data/ to another one, then run the command again.';

const MOUNTED =
  'A file that is mounted on its own cannot be replaced: mount the directory that it is in, then run the command again.';

const LOCKLESS =
  'The file system there has no working locks, as with some NFS and SMB mounts: set dataDir to a directory on a local disk.';

const KNOWN: readonly (readonly [cause: string, advice: string])[] = [
  ["EMFILE: too many open files, open 'x'", FILES],
  ['IO Error: Cannot open file "x": Too many open files', FILES],
  ['Out of Memory Error: failed to allocate data of size 1.0 GiB', MEMORY],
  ['Array buffer allocation failed', MEMORY],
  ['WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance', MEMORY],
  ['libduckdb.so: failed to map segment from shared object', MEMORY],
  ['ENOENT: no such file or directory, uv_cwd', ELSEWHERE],
  ["Cannot find module '@duckdb/node-bindings-linux-x64/duckdb.node'", INCOMPLETE],
  ["/lib/libm.so.6: version `GLIBC_2.29' not found (required by libduckdb.so)", INCOMPLETE],
  ['IO Error: Could not read from file "x": Input/output error', FAILING],
  ['FATAL Error: fsync failed!', FAILING],
  ['IO Error: Could not write file "x.wal": No space left on device', FULL],
  ["ENOSPC: no space left on device, write 'x'", FULL],
  ['IO Error: Could not write file "x": Disk quota exceeded', FULL],
  ["EDQUOT: quota exceeded, open 'x'", FULL],
  ['IO Error: Could not write file "x": File too large', FULL],
  ["EFBIG: file too large, write 'x'", FULL],
  ['FATAL Error: Failed to create checkpoint because of error: No space left on device', FULL],
  ['IO Error: Cannot open file "x": Permission denied', DENIED],
  ["EACCES: permission denied, open 'x'", DENIED],
  ['IO Error: Cannot open file "x": Read-only file system', DENIED],
  ["EROFS: read-only file system, open 'x'", DENIED],
  ["EPERM: operation not permitted, chmod 'x'", DENIED],
  ['IO Error: Corrupt database file: computed checksum 1 does not match stored checksum 2', DAMAGED],
  ['IO Error: The file "x" exists, but it is not a valid DuckDB database file!', DAMAGED],
  ['IO Error: Could not read enough bytes from file "x"', DAMAGED],
  ['IO Error: Failure while replaying WAL file "x.wal": WAL does not match database file.', DAMAGED],
  ['IO Error: Input/output error', FAILING],
  ['IO Error: Could not set lock on file "x": No locks available', LOCKLESS],
  ['database is locked by another one: locking protocol', LOCKLESS],
  ['FATAL Error: Failed: database has been invalidated', FAILED],
  ['INTERNAL Error: Attempted to access index 3', FAILED],
  ['Serialization Error: Failed to deserialize', FAILED],
  ['TransactionContext Error: Failed to commit', FAILED],
  ['Out of Memory Error: failed to pin block', MEMORY],
  ["EBUSY: resource busy or locked, rename 'x.next-1' -> 'x'", MOUNTED],
];

describe('a storage failure', () => {
  it.each(KNOWN)('“%s” is one, and says what to do', (cause, advice) => {
    const error = new Error(cause);
    expect(isOfDamage(error)).toBe(advice === DAMAGED);
    const failure = storageFailure(`open ${PATH}`, error);
    expect(failure).toBeInstanceOf(StorageError);
    expect(failure.cause).toBe(error);
    expect(failure.message).toBe(`Cannot open ${PATH}: ${cause}\n${advice}`);
  });

  it('that another program has the file open names that program', () => {
    const words =
      'IO Error: Could not set lock on file "x": Conflicting lock is held in /usr/bin/python3.12 (PID 1234) by user alice. See also https://duckdb.org/docs/stable/connect/concurrency';
    expect(storageFailure(`open ${PATH}`, new Error(words)).message).toBe(
      `Cannot open ${PATH}: /usr/bin/python3.12 (PID 1234) by user alice has the file open.\nClose the program that has the file open, then run the command again.`,
    );
  });

  it.each([
    'Binder Error: Referenced column "nope" was not found',
    'Constraint Error: NOT NULL constraint failed',
    'a disk full of IO Error s',
  ])('“%s” is not one', (message) => {
    expect(errorWords(new Error(message))).toBeUndefined();
    expect(isOfDamage(new Error(message))).toBe(false);
  });

  it('may be any thrown value, of an unknown kind', () => {
    expect(storageFailure('do it', 'no reason').message).toBe(`Cannot do it: no reason\n${FAILED}`);
  });

  it('that is already explained is unchanged', () => {
    const explained = new StorageError('explained');
    expect(storageFailure('go on', explained)).toBe(explained);
  });
});
