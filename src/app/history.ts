import type { ExitCode } from '../errors.js';
import { type History, openOwnHistory } from '../warehouse/published.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from './workspace.js';

/** Runs `work` with the published history, which other processes cannot block. */
export async function withHistory(
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (history: History, workspace: Workspace) => Promise<ExitCode>,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime, 'optional');
  return withHistoryOf(workspace, (history) => work(history, workspace));
}

/** The same with a workspace that was read before. */
export async function withHistoryOf<Result>(
  { historyFile }: Workspace,
  work: (history: History) => Promise<Result>,
): Promise<Result> {
  const history = await openOwnHistory(historyFile);
  try {
    return await work(history);
  } finally {
    history.close();
  }
}
