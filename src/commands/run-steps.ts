import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import { type ExitCode, StorageError } from '../errors.js';
import { hasStoredDays } from '../history/days.js';
import { jobLine } from '../print/jobs.js';
import { unsettledLines } from '../print/status.js';
import { summarize } from '../print/run.js';
import { runOnce } from '../service/run.js';
import { readUnsettled } from '../service/status.js';
import { conclude, withSteps } from './steps.js';

/** Runs the steps that are due, as `readership run` does, and says what they did. */
export const runAllSteps = (
  workspace: Workspace,
  options: WorkspaceOptions & { readonly json: boolean },
  runtime: Runtime,
  waitMs: number,
): Promise<ExitCode> =>
  withSteps('run', workspace, options, runtime, async (parts, progress) => {
    const { store } = parts;
    const isNewSandbox = options.sandbox === true && !(await hasStoredDays(store));
    if (isNewSandbox && !options.json)
      runtime.output.note('Everything in the sandbox is simulated, including its jobs from earlier weeks.');
    const apply = workspace.settings.improve.mode === 'apply';
    const jobs = progress.collectJobs(waitMs);
    const outcome = await runOnce(parts, { apply, waitMs });
    progress.end();
    // A database that cannot be opened was named below, and has nothing to summarize.
    const isReadable = !outcome.outages.some(
      ({ step, error }) => step === 'export' && error instanceof StorageError,
    );
    if (isReadable && !runtime.signal.aborted && !options.json) {
      const summary = await summarize({ ...outcome, jobs }, parts, runtime, progress.cost, options);
      if (summary !== '') runtime.output.words(summary);
    } else for (const job of jobs.values()) runtime.output.note(jobLine(job));
    const exitCode = conclude(outcome.outages, runtime);
    for (const line of unsettledLines(readUnsettled(parts.state, workspace.projects, runtime.now())))
      runtime.output.note(line);
    return exitCode;
  });
