import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Pure modules, whose every branch is tested. */
const DECISIONS = [
  'src/{day,agents/{lifecycle,select},api/{hour,retry-after,retry}}.ts',
  'src/{config/cron,export/{plan,totals}}.ts',
  'src/{mail/delivery,reports/period,service/due}.ts',
];

/** The files that take longest, the longest first: where tests never ran, their times are not known. */
const LONGEST = [
  ...['commands/loss.slow', 'commands/decisions.slow', 'installed/package.slow', 'commands/sending.slow'],
  ...['service/year.slow', 'commands/bad-input.slow', 'web/use.slow', 'secrets/commands.slow'],
  ...['commands/late-platform.slow', 'commands/copies.slow', 'web/hostile.slow', 'commands/permissions.slow'],
  ...['steps/late-data.slow', 'secrets/faults.slow', 'commands/sql.slow', 'commands/clock.slow'],
  ...[
    'mail/report-step',
    'export/behaviors',
    'web/pages',
    'export/hostile',
    'web/access',
    'export/retention',
  ],
  ...['mail/without-server', 'mail/own-reports', 'history/dataset/dataset', 'mail/server-pauses'],
].map((name) => `/test/${name}.test.ts`);

/** Short files come last, so that all workers are busy until the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = LONGEST.findIndex((name) => moduleId.endsWith(name));
      if (found !== -1) return found;
      return LONGEST.length + (moduleId.endsWith('.slow.test.ts') ? 0 : 1);
    };
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: 'test/setup.ts',
    // Loading all modules again for each file would take a minute and a half.
    isolate: false,
    // Most tests wait for a process, a server or the disk, so two workers more than cores keep all cores busy.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    // The slow tests use what the fast ones compiled.
    experimental: { fsModuleCache: true },
    // Commands are processes of their own, and a shared machine may be slow. Only a hang takes this long.
    testTimeout: 240_000,
    hookTimeout: 240_000,
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
