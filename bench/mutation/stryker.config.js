import process from 'node:process';

/** How `main.ts` lets Stryker change MUTATED and run TESTS. */
export default {
  mutate: [process.env['MUTATED']],
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  // Not only the tests related to the file: Vitest forgets which those are when it runs again.
  vitest: { configFile: 'bench/mutation/vitest.config.js', related: false },
  coverageAnalysis: 'perTest',
  // Tests that load a module again for each of its constants take most of the time, and find little.
  ignoreStatic: true,
  // Wording is held by tests that read what people see.
  mutator: { excludedMutations: ['StringLiteral'] },
  timeoutMS: 5_000,
  reporters: ['clear-text'],
  clearTextReporter: { reportTests: false, reportScoreTable: true, allowColor: false },
  tempDirName: 'coverage/mutation',
  thresholds: { high: 90, low: 90, break: 90 },
};
