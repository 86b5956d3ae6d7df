import { defineConfig } from 'vitest/config';

/** Benchmarks run through vitest, as the tests do: it is the TypeScript runtime at hand. */
export default defineConfig({
  test: { include: ['bench/**/*.bench.ts'], fileParallelism: false },
});
