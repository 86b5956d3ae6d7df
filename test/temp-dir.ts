import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];
afterAll(async () => {
  await Promise.all(made.splice(0).map((path) => rm(path, { recursive: true, force: true })));
});

/** A directory that is gone after the tests of the file. */
export async function tempDir(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'readership-test-'));
  made.push(path);
  return path;
}
