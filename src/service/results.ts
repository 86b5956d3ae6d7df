import { createHash } from 'node:crypto';
import { min } from 'date-fns';
import { nextScheduled } from '../config/cron.js';
import { addDays, dayOf, startOfDay } from '../day.js';
import type { State } from '../state/state.js';
import {
  currentSteps,
  keepStepResult,
  RESULT_STEPS,
  type ResultStep,
  storeStepResult,
} from '../state/runs.js';
import { historyStamp } from '../steps/known-days.js';
import type { WorkspaceView } from '../steps/parts.js';
import type { StepRunner } from '../steps/step.js';
import { inputsOf, namesIn } from './basis.js';

/** What the results of a run depend on, as of its beginning, and the steps whose stored results are still right. */
export interface KnownResults {
  readonly inputs: string;
  readonly current: ReadonlySet<ResultStep>;
}

/** Which stored results are still right. Reads the state and some files, but not the history. */
export async function readResults(workspace: WorkspaceView, state: State, now: Date): Promise<KnownResults> {
  const inputs = await inputsOf(workspace, now);
  const current = currentSteps(state, await basisOf(inputs, workspace), now);
  return { inputs, current: workspace.dataset === undefined ? new Set([...current, 'publish']) : current };
}

/** Includes which pages of reports exist, because a page that somebody removed is written again. */
async function basisOf(inputs: string, { historyFile, reportsDir }: WorkspaceView): Promise<string> {
  const pages = JSON.stringify(await namesIn(reportsDir));
  const digest = createHash('sha256').update(pages).digest('base64');
  return `${inputs} ${digest} ${await historyStamp(historyFile)}`;
}

/** Stores the results of the steps of a run that are done, and keeps those that did not have to run. */
export async function storeResults(
  workspace: WorkspaceView,
  state: State,
  { inputs, current }: KnownResults,
  { done }: StepRunner,
  now: Date,
): Promise<void> {
  const basis = await basisOf(inputs, workspace);
  const { timezone } = workspace.settings.reports;
  // A period ends at midnight, here and in UTC.
  const midnights = [startOfDay(addDays(dayOf(now), 1)), nextScheduled('0 0 * * *', timezone, now)];
  await state.transaction(() => {
    for (const step of RESULT_STEPS) {
      const result = done.get(step);
      if (result !== undefined) {
        // Loading days depends on nothing that people or the platform's agents did.
        const changes = step === 'export' ? null : result.changes;
        const dueAt = min([...midnights, ...result.dueAt]);
        storeStepResult(state, { step, basis, changes, dueAt }, now);
      } else if (current.has(step)) keepStepResult(state, step, basis);
    }
  });
}
