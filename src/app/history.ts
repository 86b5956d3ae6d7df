import type { ExitCode } from '../errors.js';
import { type History, openOwnHistory } from '../history/history.js';
import type { State } from '../state/state.js';
import { readTables } from '../state/tables.js';
import { withStateOf } from './state.js';
import { readWorkspace, type Runtime, type Workspace, type WorkspaceOptions } from './workspace.js';

/** What is read without waiting for anyone: the history, and the state as it is now. */
interface ReadStores {
  readonly history: History;
  readonly state: State;
}

/** Runs `work` with the history and the state, which other processes cannot block. */
export async function withHistory(
  options: WorkspaceOptions,
  runtime: Runtime,
  work: (stores: ReadStores, workspace: Workspace) => Promise<ExitCode>,
): Promise<ExitCode> {
  const workspace = await readWorkspace(options, runtime, 'optional');
  return withHistoryOf(workspace, (stores) => work(stores, workspace));
}

/** The same with a workspace that was read before. */
export async function withHistoryOf<Result>(
  workspace: Workspace,
  work: (stores: ReadStores) => Promise<Result>,
): Promise<Result> {
  const history = await openOwnHistory(workspace.historyFile);
  try {
    return await withStateOf(workspace, async (state) => {
      await history.show(readTables(state));
      return work({ history, state });
    });
  } finally {
    history.close();
  }
}
