import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { min } from 'date-fns';
import { isPollDue } from '../agents/poll.js';
import type { Workspace } from '../app/workspace.js';
import { nextScheduled } from '../config/cron.js';
import { notesFileIn } from '../config/notes.js';
import { addDays, dayOf, startOfDay } from '../day.js';
import { ignoreMissing, packageFile, stampOf, version } from '../files.js';
import { readDeliveries } from '../state/emails.js';
import { readUnmergedJobs } from '../state/jobs.js';
import type { State } from '../state/state.js';
import {
  currentSteps,
  keepStepResult,
  RESULT_STEPS,
  type ResultStep,
  storeStepResult,
} from '../state/runs.js';
import { historyStamp } from '../steps/history.js';
import type { StepRunner, WorkspaceView } from '../steps/step.js';

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

/** Includes which pages of reports exist, because a page that somebody removed is written again. */
async function basisOf(inputs: string, { historyFile, reportsDir }: WorkspaceView): Promise<string> {
  const pages = JSON.stringify(await namesIn(reportsDir));
  const digest = createHash('sha256').update(pages).digest('base64');
  return `${inputs} ${digest} ${await historyStamp(historyFile)}`;
}

/**
 * A digest of all that the results of steps depend on, besides the state and the history: settings and secrets, notes, the
 * workspace's own reports and templates, the sitemap if it is a file, the program, and the day (UTC).
 */
async function inputsOf(workspace: WorkspaceView, now: Date): Promise<string> {
  const { settings, settingsDigest, projects, workspaceDir, historyFile } = workspace;
  const { sitemap } = settings.improve;
  const digest = createHash('sha256');
  const add = (part: unknown) => digest.update(`${JSON.stringify(part)}\n`);
  add([version, dayOf(now), settingsDigest, projects.map(({ id }) => id)]);
  for (const file of [
    packageFile('dist/cli.js'),
    notesFileIn(workspaceDir ?? dirname(historyFile)),
    sitemap ?? '',
  ])
    add(await stampOf(file));
  if (workspaceDir !== undefined)
    for (const folder of ['reports', 'templates']) add(await stampsIn(join(workspaceDir, folder)));
  return digest.digest('base64');
}

/** The stamps of all files in a folder. */
const stampsIn = async (folder: string): Promise<unknown[]> =>
  Promise.all((await namesIn(folder)).map((name) => stampOf(join(folder, name))));

/** The names of all files in a folder, in an order that does not change; none if there is no such folder. */
const namesIn = async (folder: string): Promise<string[]> =>
  ((await readdir(folder, { recursive: true }).catch(ignoreMissing)) ?? []).sort();
