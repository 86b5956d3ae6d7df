import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterFile } from './cleanup.js';

/** A directory that is removed after the tests of the file. */
export async function tempDir(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'readership-test-'));
  afterFile(() => rm(path, { recursive: true, force: true }));
  return path;
}
