import { ReadershipError } from '../errors.js';
import type { StepFault } from '../schedule/step-runner.js';

/** 0 done · 1 failed · 2 usage or configuration · 75 try again later. */
export type ExitCode = 0 | 1 | 2 | 75;

export const exitCodeOf = (error: unknown): Exclude<ExitCode, 0> =>
  error instanceof ReadershipError ? error.exitCode : 1;

/** One code for several faults: what a person must mend comes before what mends itself. */
export function exitCodeOfFaults(faults: readonly StepFault[]): ExitCode {
  const codes = faults.map(({ error }) => exitCodeOf(error));
  return ([2, 1, 75] as const).find((code) => codes.includes(code)) ?? 0;
}
