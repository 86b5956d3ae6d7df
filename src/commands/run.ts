import { withState } from '../app/state.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { type ExitCode, StorageError } from '../errors.js';
import { hasStoredDays } from '../history/days.js';
import { jobLine } from '../print/jobs.js';
import { noteUnsettled } from '../print/status.js';
import { hasNothingToDo } from '../service/results.js';
import { aDuration, EMAIL_ENVIRONMENT, flag, JSON_LOG, value, workspaceCommand } from './command.js';

/**
 * The sandbox's agents finish within seconds; those of a real platform are polled by the next run.
 */
const SANDBOX_WAIT_MS = 30_000;

export const run = workspaceCommand('run', {
  summary: 'run all five steps once: export, improve, poll, report, publish',
  description:
    'Runs all five steps once: loads the days that are due, flags pages for agents (and creates their jobs if improve.mode is apply), polls the jobs, renders the reports, emails the reports that are due, and brings the Parquet dataset up to date, if you have one. It does only what is due, so it is safe to run at any time, even twice in a row.',
  options: {
    wait: value(
      '<time>',
      'keep polling while jobs are active, such as 30s or 10m (default: 30s in the sandbox, else poll once)',
      aDuration,
    ),
    pausedOk: flag(
      'exit with 0 instead of 75 if the next run will resume, for schedulers that know only success and failure',
    ),
    json: flag(JSON_LOG),
  },
  examples: `
  readership run --sandbox          try everything without an account
  readership run                    once an hour, from cron
  readership run --wait 10m         wait until the agents are done`,
  environment: EMAIL_ENVIRONMENT,
  run: async ({ wait, pausedOk, json = false, ...options }, runtime) => {
    const workspace = await readWorkspace(options, runtime);
    if (await reportsNothingToDo(workspace, runtime, { mayBeIdle: wait === undefined, json })) return 0;
    const waitMs = wait ?? (options.sandbox === true ? SANDBOX_WAIT_MS : 0);
    const exitCode = await runAllSteps(workspace, { ...options, json }, runtime, waitMs);
    return exitCode === 75 && pausedOk === true ? 0 : exitCode;
  },
});

/** Says so if everything is up to date, and names what still needs attention. */
const reportsNothingToDo = (
  workspace: Workspace,
  runtime: Runtime,
  { mayBeIdle, json }: { readonly mayBeIdle: boolean; readonly json: boolean },
): Promise<boolean> =>
  withState(workspace, async (state) => {
    if (!mayBeIdle || !(await hasNothingToDo(workspace, state, runtime.now()))) return false;
    noteUnsettled(workspace, state, runtime);
    if (!json) runtime.output.words('Everything is up to date. To see what is stored: readership status');
    return true;
  });

/** Runs the steps that are due, and says what they did. */
async function runAllSteps(
  workspace: Workspace,
  options: WorkspaceOptions & { readonly json: boolean },
  runtime: Runtime,
  waitMs: number,
): Promise<ExitCode> {
  // Loading what steps need takes longer than finding that there is nothing to do.
  const { conclude, withSteps } = await import('./steps.js');
  const { summarize } = await import('../print/run.js');
  const { runOnce } = await import('../service/run.js');
  return withSteps('run', workspace, options, runtime, async (parts, progress) => {
    const { output } = runtime;
    const isNewSandbox = options.sandbox === true && !(await hasStoredDays(parts.store));
    if (isNewSandbox && !options.json)
      output.note('Everything in the sandbox is simulated, including its jobs from earlier weeks.');
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
      if (summary !== '') output.words(summary);
    } else for (const job of jobs.values()) output.note(jobLine(job));
    const exitCode = conclude(outcome.outages, runtime);
    noteUnsettled(workspace, parts.state, runtime);
    return exitCode;
  });
}
