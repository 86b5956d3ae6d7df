import { statfs } from 'node:fs/promises';

/** Bytes that may still be written where a directory lies. */
export async function freeDisk(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
