import { VIEWS_OPERATION } from '../api/client.js';
import { type Listener, MAX_LOCK_WAIT_MS, withLiveDatabase } from '../app/open.js';
import type { Runtime } from '../app/runtime.js';
import { readWorkspace, waitingAtMost, type Workspace, type WorkspaceOptions } from '../app/workspace.js';
import { nextMinute } from '../format/days.js';
import { jobLine } from '../print/jobs.js';
import { retryNotes } from '../print/log.js';
import { ExportProgress } from '../print/progress.js';
import type { StepContext } from '../steps/context.js';
import type { Output } from '../terminal/output.js';

type StepWork<Result> = (
  context: StepContext,
  workspace: Workspace,
  progress: ExportProgress,
) => Promise<Result>;

/**
 * Runs `work` with everything that steps need, and lets go of it all again, however it ends. One that `waits` does so for
 * the budget as long as it takes.
 */
export async function withSteps<Result>(
  command: string,
  { waits = false, ...options }: WorkspaceOptions & { readonly waits?: boolean },
  runtime: Runtime,
  work: StepWork<Result>,
): Promise<Result> {
  const configured = await readWorkspace(options, runtime);
  const workspace = waits ? waitingAtMost(Infinity, configured) : configured;
  const progress = new ExportProgress(runtime.output);
  const listener = showing(progress, runtime.output);
  const onHeld = (who: string) => {
    runtime.output.note(`The database is held by ${who}; waiting for up to ${MAX_LOCK_WAIT_MS / 1000} s.`);
  };
  const hold = { command, listener, onHeld, maxWaitMs: MAX_LOCK_WAIT_MS };
  try {
    return await withLiveDatabase(workspace, runtime, hold, (context) => work(context, workspace, progress));
  } finally {
    progress.end();
  }
}

const showing = (progress: ExportProgress, output: Output): Listener => ({
  onWait: (until, why) => {
    output.note(`${why} Waiting until ${nextMinute(until)}.`);
  },
  onReconciled: (words) => {
    output.note(words);
  },
  onSkew: (words) => {
    output.note(words);
  },
  onRequest: ({ name }) => {
    if (name === VIEWS_OPERATION) progress.countRequest();
  },
  onRetry: retryNotes((text) => {
    output.note(text);
  }),
  observer: {
    onExportPlan: (project, plan) => {
      progress.begin(project, plan);
    },
    onDay: (_, result) => {
      progress.advance(result);
    },
    onAlertFailed: (words) => {
      output.note(words);
    },
    onJob: (job) => {
      output.note(jobLine(job));
    },
  },
});
