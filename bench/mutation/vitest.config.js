import process from 'node:process';
import { defineConfig } from 'vitest/config';
import config from '../../vitest.config.js';

/** Tests that call the decisions in their own process, since commands run `dist/`, which has no mutants. */
export default defineConfig({
  test: {
    ...config.test,
    include: [`test/${process.env['ROOM']}/*.test.ts`],
    exclude: ['**/*.slow.test.ts', 'test/web/!(access).test.ts'],
    // These wait for locks between processes, which a thread of Stryker does not see.
    testNamePattern: /^(?!an action )/,
  },
});
