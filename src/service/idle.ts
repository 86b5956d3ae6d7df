import { isPollDue } from '../agents/poll.js';
import type { Workspace } from '../app/workspace.js';
import { readDeliveries } from '../state/emails.js';
import { readUnmergedJobs } from '../state/pull-requests.js';
import type { State } from '../state/state.js';
import { RESULT_STEPS } from '../state/runs.js';
import { readResults } from './results.js';

/** Whether a run would find nothing to do. Reads the state and some files, but not the history. */
export async function hasNothingToDo(workspace: Workspace, state: State, now: Date): Promise<boolean> {
  const { settings, projects } = workspace;
  // A monitor expects a ping from each run.
  if (settings.alerts.pingUrl !== undefined) return false;
  const { current } = await readResults(workspace, state, now);
  if (!RESULT_STEPS.every((step) => current.has(step))) return false;
  if (isPollDue(state, settings.improve.mode === 'apply', now)) return false;
  // What a killed process was sending is of unknown outcome, which the next worker records.
  if (readDeliveries(state).some((delivery) => delivery.state === 'sending')) return false;
  return (
    settings.pullRequests === undefined ||
    projects.every(({ id }) => readUnmergedJobs(state, id, now).length === 0)
  );
}
