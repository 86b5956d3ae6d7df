import { randomUUID } from 'node:crypto';
import { chmod, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Environment } from '../../config/load.js';
import { ConfigurationError, messageOf, ReadershipError } from '../../errors.js';
import { ignoreMissing, syncToDisk } from '../../files.js';

/** Where a lake is, a directory or `s3://bucket/prefix`, and how to reach it. */
export interface LakePlace {
  readonly location: string;
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  /** Has the credentials of object storage. */
  readonly environment: Environment;
  /** How long replaced files are kept, so that readers who opened the table before can finish. */
  readonly keepReplacedMs: number;
}

/** The files of a lake by their paths in it, on a disk or in a bucket. */
export interface LakeStorage {
  /** A local directory of this publisher alone, for files before they are put in place. */
  readonly staging: string;
  /** Bytes sent to and received from object storage; zero on a disk. */
  readonly traffic: { sentBytes: number; receivedBytes: number };
  /** The path of a new file in `staging`. */
  stage(): Promise<string>;
  /**
   * Moves a local file into place in one step, durably, replacing any file of that name. With `ifAbsent`, returns false
   * and changes nothing when there is one.
   */
  put(local: string, path: string, ifAbsent?: boolean): Promise<boolean>;
  /** The path of a file on this machine: a copy, when it is in a bucket. Nothing is there when the lake has no such file. */
  localCopy(path: string): Promise<string>;
  /** All files of the lake, and when each was written. */
  list(): Promise<Map<string, Date>>;
  remove(path: string): Promise<void>;
}

/** What to do about a store whose writes cannot be conditional. */
export const OTHER_STORE = 'Without it, publishers could overwrite each other: use another store, or a disk.';

/** The store of the lake does not answer now; the next publish tries again. */
export class LakeAwayError extends ReadershipError {
  readonly exitCode = 75;
}

const READABLE = 0o644;

/** A lake in a directory. Only the directory's own mode keeps readers out: everything in it is readable. */
export class DiskStorage implements LakeStorage {
  readonly traffic = { sentBytes: 0, receivedBytes: 0 };

  constructor(
    private readonly location: string,
    readonly staging: string,
  ) {}

  async stage(): Promise<string> {
    await this.#makeDirectory(this.staging);
    return join(this.staging, randomUUID());
  }

  async put(local: string, path: string, ifAbsent = false): Promise<boolean> {
    const target = join(this.location, path);
    await this.#makeDirectory(dirname(target));
    await chmod(local, READABLE);
    await syncToDisk(local);
    try {
      // A hard link fails when the name exists, so this one step makes the commit or does not.
      await (ifAbsent ? link : rename)(local, target);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
      throw error;
    }
    await syncToDisk(dirname(target));
    return true;
  }

  localCopy(path: string): Promise<string> {
    return Promise.resolve(join(this.location, path));
  }

  async list(): Promise<Map<string, Date>> {
    const found = new Map<string, Date>();
    const options = { recursive: true, withFileTypes: true } as const;
    for (const entry of (await readdir(this.location, options).catch(ignoreMissing)) ?? []) {
      const file = join(entry.parentPath, entry.name);
      const stats = entry.isDirectory() ? undefined : await stat(file).catch(ignoreMissing);
      if (stats !== undefined) found.set(relative(this.location, file), stats.mtime);
    }
    return found;
  }

  remove(path: string): Promise<void> {
    return rm(join(this.location, path), { force: true });
  }

  /** A new lake is for its owner only; the directories in it follow the mode of the lake's own. */
  async #makeDirectory(directory: string): Promise<void> {
    try {
      await mkdir(this.location, { recursive: true, mode: 0o700 });
      const first = await mkdir(directory, { recursive: true });
      const { mode } = await stat(this.location);
      for (let made = directory; first !== undefined && made.startsWith(first); made = dirname(made)) {
        await chmod(made, (mode & 0o7777) | 0o555);
        await syncToDisk(dirname(made));
      }
    } catch (cause) {
      const words = `Cannot make the directory ${directory} (${messageOf(cause)}). Name one that you may write.`;
      throw new ConfigurationError(words, { cause });
    }
  }
}
