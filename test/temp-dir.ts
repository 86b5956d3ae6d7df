import { statfsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterFile } from './cleanup.js';

/** Free bytes of a file system; none if there is no such directory. */
function freeIn(directory: string): number {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

/** In memory where there is room: waiting for a disk to sync would take a third of the time of all tests. */
const PARENT = freeIn('/dev/shm') > 4e9 ? '/dev/shm' : tmpdir();

/** A directory that is removed after the tests of the file. */
export async function tempDir(): Promise<string> {
  const path = await mkdtemp(join(PARENT, 'readership-test-'));
  afterFile(() => rm(path, { recursive: true, force: true }));
  return path;
}
