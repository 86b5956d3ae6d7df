import type { Parameters } from 'fast-check';

/**
 * How often a property is tried. The same cases every time, so that what fails can be mended at leisure; `FUZZ_SEED`
 * makes others, and `FUZZ_TIMES` more of them.
 */
export function tries<Case>(numRuns: number): Parameters<Case> {
  const { FUZZ_SEED = '42', FUZZ_TIMES = '1' } = process.env;
  return { seed: Number(FUZZ_SEED), numRuns: numRuns * Number(FUZZ_TIMES) };
}
