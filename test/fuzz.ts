import type { Parameters } from 'fast-check';

/**
 * How often a property is tried: with the same cases every time, so that a failure can be reproduced.
 * `FUZZ_SEED` makes other cases, and `FUZZ_TIMES` that many times as many.
 */
export function tries<Case>(numRuns: number): Parameters<Case> {
  const { FUZZ_SEED = '42', FUZZ_TIMES = '1' } = process.env;
  return { seed: Number(FUZZ_SEED), numRuns: Math.ceil(numRuns * Number(FUZZ_TIMES)) };
}
