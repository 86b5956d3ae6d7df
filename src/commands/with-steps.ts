import { VIEWS_OPERATION } from '../api/client.js';
import type { Observer, StepContext } from '../schedule/context.js';
import { openWarehouse } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { openBudgets } from './budgets.js';
import { jobLine } from './job-lines.js';
import { ExportProgress } from '../terminal/export-progress.js';
import type { Output } from '../terminal/output.js';
import { retryNotes } from '../terminal/retry-notes.js';
import type { Runtime } from './runtime.js';
import { connect, readWorkspace, transportOf, type Workspace, type WorkspaceOptions } from './workspace.js';

/** How long a command waits for another process to let go of the live database. */
const MAX_LOCK_WAIT_MS = 30_000;

type StepWork<Result> = (
  context: StepContext,
  workspace: Workspace,
  progress: ExportProgress,
) => Promise<Result>;

/** Runs `work` with everything that steps need, and lets go of it all again, however it ends. */
export async function withSteps<Result>(
  command: string,
  options: WorkspaceOptions,
  runtime: Runtime,
  work: StepWork<Result>,
): Promise<Result> {
  const workspace = await readWorkspace(options, runtime);
  const { now, signal } = runtime;
  const warehouse = await openWarehouse(workspace.liveFile, {
    command: `readership ${command}`,
    ...{ now, signal, maxWaitMs: MAX_LOCK_WAIT_MS },
  });
  try {
    return await withConnection(workspace, warehouse, runtime, work);
  } finally {
    await warehouse.close();
  }
}

async function withConnection<Result>(
  workspace: Workspace,
  warehouse: Warehouse,
  runtime: Runtime,
  work: StepWork<Result>,
): Promise<Result> {
  const { output, now, signal } = runtime;
  const { settings, projects, historyFile, reportsDir, directory: workspaceDir } = workspace;
  const progress = new ExportProgress(output);
  const budgets = await openBudgets(warehouse, settings, now, (until) => {
    output.note(
      `The budget of ${settings.history.requestsPerHour} requests an hour is spent: waiting until ${until.toISOString()}.`,
    );
  });
  const callbacks = {
    onRequest: ({ name }: { name: string }) => {
      if (name === VIEWS_OPERATION) progress.countRequest();
    },
    onRetry: retryNotes((text) => {
      output.note(text);
    }),
  };
  const { clientOf, close } = await connect(workspace, runtime, callbacks, budgets.paceOf);
  try {
    const observer = observe(progress, output);
    const transport = () => transportOf(workspace);
    const places = { workspaceDir, historyFile, reportsDir };
    return await work(
      { settings, projects, warehouse, clientOf, transport, ...places, now, signal, observer },
      workspace,
      progress,
    );
  } finally {
    progress.end();
    await close();
    await budgets.close();
  }
}

const observe = (progress: ExportProgress, output: Output): Observer => ({
  onExportPlan: (project, plan) => {
    progress.begin(project, plan);
  },
  onDay: (_, result) => {
    progress.advance(result);
  },
  onJob: (job) => {
    output.note(jobLine(job));
  },
});
