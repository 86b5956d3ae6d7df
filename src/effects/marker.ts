import { access, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StorageError } from '../errors.js';
import { exists, ignoreMissing } from '../files.js';
import { journalFiles } from './file.js';

/**
 * The file next to a configuration that exists once its workspace has sent something. It is outside the data directory,
 * which may be lost with its disk.
 */
export const markerOf = (configFile: string): string =>
  join(dirname(configFile), `.${basename(configFile)}.sent`);

/** Creates the marker. Returns whether it is there: this user may not be allowed to write next to the configuration. */
export async function leaveMarker(marker: string, dataDir: string): Promise<boolean> {
  const words =
    `This workspace has sent agent jobs or emails. They are listed in ${dataDir}, so that nothing is sent twice.\n` +
    'If that directory is lost, this file prevents Readership from starting over. Delete it to start over.\n';
  return access(marker).then(
    () => true,
    () =>
      writeFile(marker, words, { flag: 'wx' }).then(
        () => true,
        () => false,
      ),
  );
}

/**
 * Throws a `StorageError` if a workspace that has sent something has neither a database nor a journal: everything would
 * be loaded and sent again.
 */
export async function refuseToStartOver(marker: string, dataDir: string, liveFile: string): Promise<void> {
  if ((await exists(liveFile)) || !(await exists(marker))) return;
  if (((await journalFiles(dataDir).catch(ignoreMissing)) ?? []).length > 0) return;
  throw new StorageError(
    `${dataDir} is empty, although this workspace has sent jobs or emails: they would be sent again. Nothing was changed.\n` +
      'If the directory was moved, or its disk is not mounted, correct that. To restore a backup: readership restore --from FILE\n' +
      `To start over: rm '${marker}'`,
  );
}

/** The data directory of a running service is another one than before, or gone. */
export class DirectoryChangedError extends StorageError {}

/** Watches a data directory, and what it is once it exists. */
export class DirectoryWatch {
  #identity: string | undefined;

  constructor(private readonly directory: string) {}

  /** Throws a `DirectoryChangedError` if the directory is no longer the first one that was seen. */
  async expectSame(): Promise<void> {
    const found = await stat(this.directory).catch(ignoreMissing);
    const identity = found && `${found.dev} ${found.ino}`;
    this.#identity ??= identity;
    if (this.#identity === identity) return;
    throw new DirectoryChangedError(
      `The data directory ${this.directory} is ${identity === undefined ? 'gone' : 'another one now'}, so its disk may not be mounted. ` +
        'Nothing was changed. Bring it back, then start again.',
    );
  }
}
