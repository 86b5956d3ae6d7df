import { randomUUID } from 'node:crypto';
import { chmod, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { ConfigurationError, messageOf } from '../../errors.js';
import { ignoreMissing, syncToDisk } from '../../files.js';
import type { LakeStorage } from './storage.js';

const READABLE = 0o644;

/** A lake in a directory. Only the directory's own mode keeps readers out: everything in it is readable. */
export class DiskStorage implements LakeStorage {
  readonly staging: string;
  readonly traffic = { sentBytes: 0, receivedBytes: 0 };

  constructor(
    readonly location: string,
    publisher: string,
  ) {
    this.staging = join(location, '_staged', publisher);
  }

  read(path: string): Promise<string | undefined> {
    return readFile(join(this.location, path), 'utf8').catch(ignoreMissing);
  }

  localCopy(path: string): Promise<string> {
    return Promise.resolve(join(this.location, path));
  }

  async putIfAbsent(path: string, text: string): Promise<boolean> {
    const staged = join(this.staging, randomUUID());
    await this.#makeDirectory(this.staging);
    await writeFile(staged, text);
    try {
      // A hard link fails when the name exists, so this one step makes the commit or does not.
      await this.#place(staged, path, link);
      return true;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
      throw error;
    } finally {
      await rm(staged, { force: true });
    }
  }

  put(local: string, path: string): Promise<void> {
    return this.#place(local, path, rename);
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

  async #place(local: string, path: string, how: typeof link): Promise<void> {
    const target = join(this.location, path);
    await this.#makeDirectory(dirname(target));
    await chmod(local, READABLE);
    await syncToDisk(local);
    await how(local, target);
    await syncToDisk(dirname(target));
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
