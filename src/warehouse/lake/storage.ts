import { randomUUID } from 'node:crypto';
import { chmod, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Environment } from '../../config/load.js';
import { codeOf, ConfigurationError, messageOf, ReadershipError } from '../../errors.js';
import { ignoreMissing, syncToDisk } from '../../files.js';

/** The location of a lake, a directory or `s3://bucket/prefix`, and how to access it. */
export interface LakePlace {
  readonly location: string;
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  /** The `AWS_` variables: credentials and settings of object storage, and no other secrets. */
  readonly credentials: Environment;
  /** How long replaced files are kept for readers that opened the table before. */
  readonly keepReplacedMs: number;
}

/** The files of a lake, on a disk or in a bucket, by their paths in it. */
export interface LakeStorage {
  /** This publisher's local directory for files that are not in place yet. */
  readonly staging: string;
  /** Bytes sent to and received from object storage; zero on a disk. */
  readonly traffic: { sentBytes: number; receivedBytes: number };
  /** Throws a `ConfigurationError` unless `put` with `ifAbsent` is atomic. */
  expectConditions(): Promise<void>;
  /** The path of a new file in `staging`. */
  stage(): Promise<string>;
  /**
   * Moves a local file into place atomically and durably, replacing any file of that name. With
   * `ifAbsent`, returns false and changes nothing if there is one.
   */
  put(local: string, path: string, ifAbsent?: boolean): Promise<boolean>;
  /** The local path of a file, or of its copy if it is in a bucket. The path may not exist in the lake. */
  localCopy(path: string): Promise<string>;
  /** All files of the lake with their modification times. */
  list(): Promise<Map<string, Date>>;
  remove(path: string): Promise<void>;
}

/** Advice for a store without conditional writes. */
export const OTHER_STORE = 'Publishers could overwrite each other: use another store, or a disk.';

/** The lake's store does not respond; the next publish tries again. */
export class LakeAwayError extends ReadershipError {
  override readonly exitCode = 75;
}

/** How many files are read at once. */
export const AT_ONCE = { concurrency: 4 };

const READABLE = 0o644;

/** A lake in a directory. Access is controlled by that directory's mode; everything in it is readable. */
export class DiskStorage implements LakeStorage {
  readonly traffic = { sentBytes: 0, receivedBytes: 0 };

  constructor(
    private readonly location: string,
    readonly staging: string,
  ) {}

  /** A hard link to an existing name always fails. */
  expectConditions(): Promise<void> {
    return Promise.resolve();
  }

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
      // A hard link fails if the name exists, so the commit is atomic.
      await (ifAbsent ? link : rename)(local, target);
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
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

  /** A new lake is private to its owner; its subdirectories get the lake's mode. */
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
      const words = `Cannot create the directory ${directory} (${messageOf(cause)}). Use one that you can write to.`;
      throw new ConfigurationError(words, { cause });
    }
  }
}
