import { exists } from '../files.js';
import { readWorkspaceRow } from '../state/workspace.js';
import { rememberDays } from './known-days.js';
import type { Using } from './parts.js';
import { StepRunner } from './step.js';

/**
 * Writes the history again if jobs, messages, emails or skips have changed since it was written, so that it stays a backup
 * of the state, and remembers what is known of its days. Before anything was loaded, there is no history.
 */
export async function updateHistory({
  workspace,
  state,
  store,
  session,
}: Using<'workspace' | 'state' | 'store' | 'session'>): Promise<void> {
  if (!(await exists(workspace.historyFile))) return;
  const carried = await store.carried();
  if (carried?.changes !== readWorkspaceRow(state).changes) await store.write();
  await rememberDays({ workspace, state, store, session });
}

/** Does some work, and writes the history again if the work changed what it carries, even if it failed halfway. */
export async function doAndStore<Result>(
  parts: Using<'workspace' | 'state' | 'store' | 'session'>,
  work: (runner: StepRunner) => Promise<Result>,
) {
  const runner = new StepRunner(parts);
  const result = await work(runner).finally(() => updateHistory(parts));
  return { result, outages: runner.outages };
}
