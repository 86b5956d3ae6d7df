import type { Environment } from '../config/load.js';
import { ReadershipError } from '../errors.js';
import type { StepFault } from '../steps/runner.js';
import type { Output } from '../terminal/output.js';

/** What of its process a command is handed, so that tests can hand it something else. */
export interface Runtime {
  readonly workingDirectory: string;
  readonly environment: Environment;
  readonly now: () => Date;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly output: Output;
}

/**
 * Runs the work of a command, and makes its exit code that of the process: also after an interruption, when that is how
 * the command ends.
 */
export type Act = (
  work: (runtime: Runtime) => Promise<ExitCode>,
  options?: { readonly endsByInterruption?: boolean },
) => Promise<void>;

/** 0 done · 1 failed · 2 usage or configuration · 75 try again later. */
export type ExitCode = 0 | 1 | 2 | 75;

export const exitCodeOf = (error: unknown): Exclude<ExitCode, 0> =>
  error instanceof ReadershipError ? error.exitCode : 1;

/** One code for several faults: problems a person must fix come before temporary ones. */
export function exitCodeOfFaults(faults: readonly StepFault[]): ExitCode {
  const codes = faults.map(({ error }) => exitCodeOf(error));
  return ([2, 1, 75] as const).find((code) => codes.includes(code)) ?? 0;
}
