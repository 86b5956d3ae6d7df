import { MAX_LOCK_WAIT_MS, withParts } from '../app/open.js';
import type { Runtime, Workspace } from '../app/workspace.js';
import { type ExitCode, exitCodeOf, messageOf, ReadershipError } from '../errors.js';
import { inSequence } from '../format/days.js';
import { logging, openLog } from '../print/log.js';
import { ExportProgress } from '../print/progress.js';
import { doAndStore } from '../steps/history.js';
import type { Parts, StepOutage, StepRunner } from '../steps/step.js';

interface StepsOptions {
  /** How long to wait for another process that works. */
  readonly maxLockWaitMs?: number;
  /** Whether everything may be loaded again if the history is missing. */
  readonly mayBeginAgain?: boolean;
  /** Whether standard output is the log that `start` writes, and nothing else. */
  readonly json?: boolean;
}

/** Runs `work` with everything that steps need, showing what happens, and releases all of it, however `work` ends. */
export async function withSteps<Result>(
  command: string,
  workspace: Workspace,
  { json = false, maxLockWaitMs = MAX_LOCK_WAIT_MS, mayBeginAgain = false }: StepsOptions,
  runtime: Runtime,
  work: (parts: Parts, progress: ExportProgress) => Promise<Result>,
): Promise<Result> {
  const { output } = runtime;
  const progress = new ExportProgress(output);
  output.goesOnUnread = true;
  if (json) output.logOnly();
  const listener = json ? logging(await openLog(output, { json })) : progress.listener;
  const onHeld = (who: string): void =>
    output.note(`The workspace is in use by ${who}; waiting for up to ${maxLockWaitMs / 1000} s.`);
  const hold = { command, listener, onHeld, maxWaitMs: maxLockWaitMs, mayBeginAgain };
  try {
    return await withParts(workspace, runtime, hold, (parts) => work(parts, progress));
  } finally {
    progress.end();
  }
}

/** Does the steps of a command, and keeps what they changed. */
export const runSteps = <Result>(
  command: string,
  workspace: Workspace,
  options: StepsOptions,
  runtime: Runtime,
  work: (runner: StepRunner, parts: Parts) => Promise<Result>,
) =>
  withSteps(command, workspace, options, runtime, async (parts, progress) => {
    const done = await doAndStore(parts, (runner) => work(runner, parts));
    return { ...done, cost: progress.cost };
  });

/**
 * Says which steps did not finish, and why. Returns one exit code for all of them: problems that a
 * person must fix come before temporary ones.
 */
export function conclude(outages: readonly StepOutage[], { output, signal }: Runtime): ExitCode {
  if (signal.aborted) output.note('Interrupted. What was read is stored; the next run continues.');
  else
    // One error may stop several steps, such as a copy that sends nothing.
    for (const message of new Set(outages.map(({ error }) => messageOf(error)))) {
      const stopped = outages.filter(({ error }) => messageOf(error) === message);
      const error = stopped[0]?.error;
      const isPaused = error instanceof ReadershipError && error.resumeAt !== undefined;
      const isLater = stopped[0]?.outcome === 'later';
      const words = stopped[0]?.outcome === 'failed' ? 'failed' : isPaused ? 'paused' : 'not finished';
      const next = isLater
        ? `\nRun again ${isPaused ? 'then' : 'later'}, or use \`readership start\` to resume automatically.`
        : '';
      const steps = inSequence(stopped.map(({ step }) => step));
      output.note(`${output.noteColors.red(`${steps} ${words}:`)} ${message}${next}`);
    }
  const codes = outages.map(({ error }) => exitCodeOf(error));
  return ([2, 1, 75] as const).find((code) => codes.includes(code)) ?? 0;
}
