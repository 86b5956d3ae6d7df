import { randomUUID } from 'node:crypto';
import { chmod, link, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Environment } from '../../config/load.js';
import { codeOf, messageOf, ReadershipError, type StorageError } from '../../errors.js';
import { ignoreMissing, syncToDisk } from '../../files.js';
import { storageFailure } from '../../storage.js';

/** Where a dataset is: a directory, or `s3://bucket/prefix` and the `AWS_` variables that give access to it. */
export interface DatasetPlace {
  readonly location: string;
  readonly environment: Environment;
}

/** The dataset is not up to date; the next publication tries again. */
export class DatasetError extends ReadershipError {}

/** An error in one sentence: what is wrong with a place, and what to do about it. */
export const datasetError = (location: string, why: string, next: string, cause?: unknown): DatasetError =>
  new DatasetError(`The Parquet dataset ${location} is not up to date: ${why}; ${next}.`, { cause });

/** The files of a dataset by their paths in it, on a disk or in a bucket. */
export interface DatasetStore {
  /** The files below a folder, each with a stamp that changes when it is replaced. */
  list(folder: string): Promise<Map<string, string>>;
  /** The text of a file; undefined if there is none. */
  read(path: string): Promise<string | undefined>;
  /** The local path of a new file to write to. */
  stage(): Promise<string>;
  /** Moves a staged file into place, durably and whole, over the one that is there. Returns its stamp. */
  put(staged: string, path: string): Promise<string>;
  /** Moves a staged file into place if none is there; returns whether it did. */
  create(staged: string, path: string): Promise<boolean>;
  remove(path: string): Promise<void>;
  /** Removes what is staged, also by earlier processes that were killed. */
  clear(): Promise<void>;
}

const READABLE = 0o644;

/** No publication takes longer from one file to the next. */
const LEFT_BEHIND_MS = 86_400_000;

/** A dataset in a directory. The mode of that directory decides who has access; everything in it is readable. */
export class DiskStore implements DatasetStore {
  /** On the same disk, and in no table, because some engines read every file there. */
  readonly #unfinished: string;
  readonly #staging: string;

  constructor(private readonly location: string) {
    this.#unfinished = join(location, '_unfinished');
    this.#staging = join(this.#unfinished, randomUUID());
  }

  async list(folder: string): Promise<Map<string, string>> {
    const stamps = new Map<string, string>();
    const options = { recursive: true, withFileTypes: true } as const;
    for (const entry of (await readdir(join(this.location, folder), options).catch(ignoreMissing)) ?? []) {
      const file = join(entry.parentPath, entry.name);
      if (entry.isFile()) stamps.set(relative(this.location, file), await stampOf(file));
    }
    return stamps;
  }

  read(path: string): Promise<string | undefined> {
    return readFile(join(this.location, path), 'utf8').catch(ignoreMissing);
  }

  async stage(): Promise<string> {
    await this.#makeDirectory(this.#staging);
    return join(this.#staging, randomUUID());
  }

  async put(staged: string, path: string): Promise<string> {
    const file = await this.#prepare(staged, path);
    await rename(staged, file);
    await syncToDisk(dirname(file));
    return stampOf(file);
  }

  async create(staged: string, path: string): Promise<boolean> {
    const file = await this.#prepare(staged, path);
    try {
      await link(staged, file);
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      // Not every file system has hard links.
      await rename(staged, file);
    }
    await syncToDisk(dirname(file));
    return true;
  }

  remove(path: string): Promise<void> {
    return rm(join(this.location, path), { force: true });
  }

  async clear(): Promise<void> {
    await rm(this.#staging, { recursive: true, force: true });
    for (const name of (await readdir(this.#unfinished).catch(ignoreMissing)) ?? []) {
      const directory = join(this.#unfinished, name);
      const stats = await stat(directory).catch(ignoreMissing);
      const isLeftBehind = stats !== undefined && stats.mtimeMs < Date.now() - LEFT_BEHIND_MS;
      if (isLeftBehind) await rm(directory, { recursive: true, force: true });
    }
  }

  /** Makes a staged file ready to get its name, which it returns. */
  async #prepare(staged: string, path: string): Promise<string> {
    const file = join(this.location, path);
    await this.#makeDirectory(dirname(file));
    await chmod(staged, READABLE);
    await syncToDisk(staged);
    return file;
  }

  /** A new dataset is private to its owner; the directories in it get its mode. */
  async #makeDirectory(directory: string): Promise<void> {
    await mkdir(this.location, { recursive: true, mode: 0o700 });
    const first = await mkdir(directory, { recursive: true });
    const { mode } = await stat(this.location);
    for (let made = directory; first !== undefined && made.startsWith(first); made = dirname(made)) {
      await chmod(made, (mode & 0o7777) | 0o555);
      await syncToDisk(dirname(made));
    }
  }
}

async function stampOf(file: string): Promise<string> {
  const { size, mtimeNs, ino } = await stat(file, { bigint: true });
  return [size, mtimeNs, ino].join('-');
}

const ADVICE = [
  [/ENOSPC|No space left|EDQUOT|Disk quota/, 'make room there'],
  [/EEXIST|ENOTDIR|Not a directory/, 'name a directory, which need not exist yet'],
  [
    // Node.js reports ENOENT when it creates nested directories on a read-only file system.
    /EACCES|EPERM|EROFS|Permission denied|Read-only|ENOENT.*, mkdir/,
    'give this user write access there, or choose another place',
  ],
] as const;

/** A failure of the disk. DuckDB's errors have no code, only the words of the system. */
export function diskError(location: string, cause: unknown): StorageError | DatasetError {
  const why = messageOf(cause);
  const [, next] = ADVICE.find(([sign]) => sign.test(why)) ?? [];
  return next === undefined
    ? storageFailure(`publish the Parquet dataset ${location}`, cause)
    : datasetError(location, why, next, cause);
}
