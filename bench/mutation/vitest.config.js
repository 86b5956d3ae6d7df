import process from 'node:process';
import { defineConfig } from 'vitest/config';
import config from '../../vitest.config.js';

/** Tests that call the decisions in their own process, since commands run `dist/`, which has no mutants. */
export default defineConfig({
  test: {
    ...config.test,
    include: [process.env['TESTS']],
    // These wait for locks between processes, which a thread of Stryker does not see, or set the umask, which it cannot.
    testNamePattern: /^(?!an action |a workspace of 0\.2\.0 )/,
  },
});
