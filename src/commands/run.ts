import { withState } from '../app/state.js';
import { readWorkspace, type Runtime, type Workspace } from '../app/workspace.js';
import { unsettledLines } from '../print/status.js';
import { hasNothingToDo } from '../service/results.js';
import { readUnsettled } from '../service/status.js';
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
    // Loading what steps need takes longer than finding that there is nothing to do.
    const { runAllSteps } = await import('./run-steps.js');
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
    const { now, output } = runtime;
    if (!mayBeIdle || !(await hasNothingToDo(workspace, state, now()))) return false;
    for (const line of unsettledLines(readUnsettled(state, workspace.projects, now()))) output.note(line);
    if (!json) output.words('Everything is up to date. To see what is stored: readership status');
    return true;
  });
