import { isMainThread } from 'node:worker_threads';
import { afterAll, afterEach, vi } from 'vitest';
import { cleanUpAfterFile, cleanUpAfterTest } from './cleanup.js';
import './equality.js';

// Commands restrict it for the whole process, and so for the test files after it.
if (isMainThread) process.umask(0o022);

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await cleanUpAfterTest();
});
afterAll(cleanUpAfterFile);
