import { open } from 'node:fs/promises';

/** Waits until a file, or the names in a directory, would survive a loss of power. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
