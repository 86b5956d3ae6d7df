import { isPollDue } from '../agents/poll.js';
import type { Settings } from '../config/schema.js';
import { exportStep } from '../steps/export.js';
import { improveStep } from '../steps/improve.js';
import { type Parts, StepRunner } from '../steps/step.js';
import { pollStep } from '../steps/poll.js';
import { updateHistory } from '../steps/history.js';
import { publishStep } from '../steps/publish.js';
import { reportStep } from '../steps/report.js';
import { hasNewPrompts } from '../state/jobs.js';
import { readLastRuns, type StepName } from '../state/runs.js';
import type { State } from '../state/state.js';
import { pinging, sendAlerts } from './alerts.js';
import { dueSteps } from './due.js';
import { readResults, storeResults } from './results.js';

const ALL_STEPS = ['export', 'improve', 'poll', 'report', 'publish'] as const;

/** The results of the five steps. */
export type RunOutcome = Awaited<ReturnType<typeof runOnce>>;

interface RunOptions {
  /** Whether improve creates the jobs it plans. */
  readonly apply: boolean;
  /** How long to keep polling while jobs are active; by default each due job is polled once. */
  readonly waitMs?: number;
  /** The steps to run; by default all whose stored results may no longer be right. */
  readonly due?: ReadonlySet<StepName>;
}

/**
 * Runs the steps in order: export, improve, poll, report, and publish where a Parquet dataset is configured. Each step
 * finds what is due in stored state, so this may be done at any time, twice, or after a week offline. A step that fails
 * is recorded and does not stop the next; an interruption does.
 */
export async function runOnce(parts: Parts, { apply, waitMs = 0, due }: RunOptions) {
  const { workspace, state, session } = parts;
  const known = await readResults(workspace, state, session.now());
  const toDo = new Set(due ?? ALL_STEPS.filter((step) => step === 'poll' || !known.current.has(step)));
  const run = new StepRunner(parts, toDo);
  const exported = await pinging(parts, run, () => run.step('export', () => exportStep(parts)));
  const isLoaded = exported?.some(({ outcome }) => outcome !== undefined && outcome.results.length > 0);
  if (due === undefined && isLoaded === true) for (const step of ALL_STEPS) toDo.add(step);
  const improved = await run.step('improve', () => improveStep(parts, { apply }));
  const sendsNothing = apply && improved !== undefined;
  const polling = waitMs === 0 ? {} : { deadlineMs: performance.now() + waitMs, keepsPolling: true };
  const polled = await run.step('poll', () => pollStep(parts, { ...polling, sendsNothing }));
  const reported = await run.step('report', () => reportStep(parts));
  if (workspace.dataset !== undefined && run.isToDo('publish'))
    await run.step('publish', () => publishStep(parts));
  await sendAlerts(parts, run.outages);
  await updateHistory(parts);
  if (run.outages.length === 0) await storeResults(workspace, state, known, run, session.now());
  return { exported: exported ?? [], improved: improved ?? [], polled, reported, outages: run.outages };
}

/** What is due by the state alone; `serviceSince` is when the service began. */
function stateOfWork(state: State, { improve }: Settings, serviceSince: Date, now: Date) {
  return {
    runs: readLastRuns(state, now),
    pollWaits: isPollDue(state, improve.mode === 'apply', now),
    hasNewPrompts: hasNewPrompts(state, now),
    serviceSince,
  };
}

/** Whether what a person approved or wrote is to be sent before any schedule says so. */
export function isSendDue(state: State, settings: Settings, serviceSince: Date, now: Date): boolean {
  const work = stateOfWork(state, settings, serviceSince, now);
  return work.hasNewPrompts && dueSteps(settings.schedule, { ...work, isUpToDate: true }, now).has('poll');
}

/** Runs the steps that are due; undefined if none is. `serviceSince` is when the service began. */
export async function runDue(parts: Parts, serviceSince: Date): Promise<RunOutcome | undefined> {
  const { workspace, state, session } = parts;
  const { settings } = workspace;
  const at = session.now();
  const stored = {
    ...stateOfWork(state, settings, serviceSince, at),
    isUpToDate: (await readResults(workspace, state, at)).current.has('publish'),
  };
  const due = dueSteps(settings.schedule, stored, at);
  if (due.size > 0) return runOnce(parts, { apply: settings.improve.mode === 'apply', due });
  await sendAlerts(parts);
  return undefined;
}
