import type { Environment } from '../config/load.js';
import type { ExitCode } from './exit-code.js';
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
