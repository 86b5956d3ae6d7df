import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { vi } from 'vitest';
import { ignoreMissing } from '../src/files.js';

/**
 * What is synced to disk while `work` replaces the file at `path`: the new file before it has that name, and its
 * directory after. Without the first, a power failure could leave an empty file in its place.
 */
export async function syncedWhile(path: string, work: () => Promise<unknown>): Promise<string[]> {
  const inode = async (at: string) => (await stat(at).catch(ignoreMissing))?.ino;
  const seen: { readonly synced: number; readonly inPlace: number | undefined }[] = [];
  const directory = await open(dirname(path));
  // All file handles have this prototype.
  const prototype = Object.getPrototypeOf(directory) as FileHandle;
  const sync = Reflect.get(prototype, 'sync');
  const spy = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
    seen.push({ synced: (await this.stat()).ino, inPlace: await inode(path) });
    await sync.call(this);
  });
  try {
    await work();
  } finally {
    spy.mockRestore();
    await directory.close();
  }
  const [file, parent] = [await inode(path), await inode(dirname(path))];
  const words = seen.flatMap(({ synced, inPlace }) => {
    if (synced === file && inPlace !== file) return 'the new file';
    return synced === parent && inPlace === file ? 'its directory' : [];
  });
  return [...new Set(words)];
}
