import { defineConfig } from 'vitest/config';

/** Modules that decide from their arguments alone: every branch is tested. */
const DECISIONS = [
  'src/{day,agents/{lifecycle,select},api/{http-date,retry}}.ts',
  'src/{budget/hour,config/{cron,shard},export/{plan,totals}}.ts',
  'src/{mail/{classify,delivery},reports/period,service/due}.ts',
];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: 'test/setup.ts',
    // Loading all modules again for each file would take a minute and a half.
    isolate: false,
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
      thresholds: {
        lines: 90,
        ...Object.fromEntries(DECISIONS.map((files) => [files, { branches: 100 }])),
      },
    },
  },
});
