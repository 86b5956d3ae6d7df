import { VIEWS_OPERATION } from '../api/client.js';
import type { Observer, StepContext } from '../schedule/context.js';
import { openWarehouse } from '../warehouse/open.js';
import { ExportProgress } from './export-progress.js';
import { jobLine } from './job-lines.js';
import type { Runtime } from './runtime.js';
import { connect, readWorkspace, type Workspace, type WorkspaceOptions } from './workspace.js';

/** How long a command waits for another process to let go of the live database. */
const MAX_LOCK_WAIT_MS = 30_000;

/** Runs `work` with everything that steps need, and lets go of it all again, however it ends. */
export async function withSteps<Result>(
  command: string,
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (context: StepContext, workspace: Workspace, progress: ExportProgress) => Promise<Result>,
): Promise<Result> {
  const workspace = await readWorkspace(options, runtime);
  const { output, now, signal } = runtime;
  const progress = new ExportProgress(output);
  const warehouse = await openWarehouse(workspace.liveFile, {
    command: `readership ${command}`,
    now,
    signal,
    maxWaitMs: MAX_LOCK_WAIT_MS,
  });
  try {
    const connection = await connect(workspace, runtime, {
      onRequest: ({ name }) => {
        if (name === VIEWS_OPERATION) progress.countRequest();
      },
      onRetry: (error, retriesLeft) => {
        output.note(`${error.message} Trying again (${retriesLeft} left).`);
      },
    });
    try {
      const observer: Observer = {
        onExportPlan: (project, plan) => {
          progress.begin(project, plan);
        },
        onDay: (_, result) => {
          progress.advance(result);
        },
        onJob: (job) => {
          output.note(jobLine(job));
        },
      };
      const { settings, projects, historyFile, reportsDir, directory: workspaceDir } = workspace;
      const { clientOf } = connection;
      return await work(
        {
          ...{
            settings,
            projects,
            warehouse,
            clientOf,
            workspaceDir,
            historyFile,
            reportsDir,
            now,
            signal,
            observer,
          },
        },
        workspace,
        progress,
      );
    } finally {
      progress.end();
      await connection.close();
    }
  } finally {
    await warehouse.close();
  }
}
