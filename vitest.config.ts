import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // By default it leaves a core idle; most tests wait for a process, a server or the disk.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    coverage: {
      provider: 'custom',
      customProviderModule: 'test/coverage.ts',
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'json'],
      reportOnFailure: true,
    },
  },
});
