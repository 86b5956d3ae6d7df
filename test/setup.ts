import { afterAll, afterEach, vi } from 'vitest';
import { cleanUpAfterFile, cleanUpAfterTest } from './cleanup.js';

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await cleanUpAfterTest();
});
afterAll(cleanUpAfterFile);
