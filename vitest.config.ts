import { defineConfig } from 'vitest/config';

/** Modules that decide from what they are given alone: nothing they may decide goes untried. */
const DECISIONS = [
  'src/{day,agents/{effect,failures,lifecycle,paths,select},api/retry}.ts',
  'src/{budget/hour,config/{cron,duration,shard},format/change,export/{plan,totals}}.ts',
  'src/{mail/{classify,delivery,due},reports/period,schedule/due-steps}.ts',
];

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
      thresholds: {
        lines: 90,
        ...Object.fromEntries(DECISIONS.map((files) => [files, { branches: 100 }])),
      },
    },
  },
});
