import { stat } from 'node:fs/promises';
import { StorageError } from '../errors.js';
import { ignoreMissing } from '../files.js';

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
