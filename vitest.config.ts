import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Pure modules, whose every branch is tested. */
const DECISIONS = [
  'src/{day,agents/{lifecycle,select},api/{hour,retry-after,retry}}.ts',
  'src/{config/cron,export/{plan,totals}}.ts',
  'src/{mail/delivery,reports/period,service/due}.ts',
];

/** The files that take longest: where tests never ran, their times are not known. */
const LONGEST = [
  ...['installed/package.slow', 'export/finishing.slow', 'web/use.slow', 'agents/life.slow'],
  ...['commands/report-send.slow', 'app/loss.slow', 'secrets/faults.slow', 'secrets/commands.slow'],
  ...['web/hostile.slow', 'commands/lost-data.slow', 'steps/late-data.slow', 'reports/headlines.slow'],
  ...['warehouse/publish-changes', 'web/access', 'reports/movers', 'sql/formats'],
].map((name) => `/test/${name}.test.ts`);

/** Short files come last, so that all workers are busy until the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.some((name) => moduleId.endsWith(name));
    const isSlow = ({ moduleId }: TestSpecification) => moduleId.endsWith('.slow.test.ts');
    const rank = (file: TestSpecification) => (isLong(file) ? 0 : 2) + (isSlow(file) ? 0 : 1);
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
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
