import { existsSync } from 'node:fs';
import { StorageError } from '../errors.js';

/**
 * The published history is the backup of the live database. Throws a `StorageError` that says how to restore when only
 * the published one is there: a new one would not know which days, jobs and mails there were.
 */
export function refuseToForget(liveFile: string, historyFile: string): void {
  if (existsSync(liveFile) || !existsSync(historyFile)) return;
  throw new StorageError(
    `The live database is gone, but the history published from it is there. A new one would not know which days, jobs ` +
      `and mails there were, and would do them all again. Nothing was changed. Restore it:\n` +
      `  rm -f "${liveFile}.wal"\n` +
      `  cp "${historyFile}" "${liveFile}"\n` +
      `  chmod u+w "${liveFile}"\n` +
      `Or, to begin anew all the same, move ${historyFile} away.`,
  );
}
