import { addMilliseconds } from 'date-fns';
import { randomUUID } from 'node:crypto';
import { TurnError } from '../agents/turn-error.js';
import { PausedError } from '../api/errors/paused-error.js';
import { TryLaterError } from '../api/errors/try-later-error.js';
import { messageOf, ReadershipError } from '../errors.js';
import type { StepContext, StepResult } from './context.js';
import { mailAlerts } from './alerts.js';
import { ping } from './ping.js';
import { isUnpublished } from './due-steps.js';
import {
  type LastRun,
  readLastRuns,
  recordStepEnd,
  recordStepStart,
  type StepName,
  type StepOutcome,
} from './runs.js';
import { exportStep, type ProjectExport } from './steps/export.js';
import { improveStep, type ProjectImprovement } from './steps/improve.js';
import { pollStep, type PolledJobs } from './steps/poll.js';
import { publishStep } from './steps/publish.js';
import { type Reported, reportStep } from './steps/report.js';

/** A fault that a step met, and what it meant for the step. */
export interface StepFault {
  readonly step: StepName;
  readonly outcome: Exclude<StepOutcome, 'done'>;
  readonly error: unknown;
}

/** What the five steps did. A step that failed before it did anything has no detail. */
export interface LoopOutcome {
  readonly exported: readonly ProjectExport[];
  readonly improved: readonly ProjectImprovement[];
  readonly polled: PolledJobs | undefined;
  readonly reported: Reported | undefined;
  readonly faults: readonly StepFault[];
}

export interface LoopOptions {
  /** Whether improve creates the jobs it plans. */
  readonly apply: boolean;
  /** How long polling goes on while jobs are active. */
  readonly waitMs: number;
  /** The steps to do; all of them when not given. */
  readonly due?: ReadonlySet<StepName>;
}

/**
 * The one loop: export, improve, poll, report, publish. Each step finds what is due in stored state, so the loop may
 * run at any time, twice, or after a week offline. A step that fails is recorded and does not stop the next; an
 * interruption does.
 */
export async function runLoop(context: StepContext, options: LoopOptions): Promise<LoopOutcome> {
  const { warehouse, now } = context;
  const before = await readLastRuns(warehouse, now());
  const run = new StepRunner(context, options.due);
  const exported = await pinging(context, run, () => run.step('export', () => exportStep(context)));
  const improved = await run.step('improve', () => improveStep(context, options.apply));
  const polled = await run.step('poll', () => pollStep(context, options.waitMs));
  const reported = await run.step('report', () => reportStep(context));
  // Readers of the published history are to see that a step has begun to fail, or no longer does.
  const isNews = failing(before) !== failing(await readLastRuns(warehouse, now()));
  const changed = run.changed || isNews || isUnpublished(before);
  await run.step('publish', () => publishStep(context, changed));
  await mailAlerts(context);
  return {
    exported: exported ?? [],
    improved: improved ?? [],
    polled,
    reported,
    faults: run.faults,
  };
}

const failing = (runs: readonly LastRun[]): string =>
  runs.flatMap(({ step, outcome }) => (outcome === 'failed' ? step : [])).join();

/** Does the export between two pings. One that has to wait sends no second one: the watcher waits with it. */
async function pinging<Detail>(
  { settings, signal, observer }: StepContext,
  run: StepRunner,
  work: () => Promise<Detail>,
): Promise<Detail> {
  const { pingUrl } = settings.alerts;
  if (pingUrl === undefined || !run.isToDo('export')) return work();
  const send = async (suffix: '/start' | '/fail' | '') => {
    const trouble = await ping(pingUrl + suffix, signal);
    if (trouble !== undefined) observer.onAlertFailed?.(trouble);
  };
  await send('/start');
  const result = await work().catch(async (error: unknown) => {
    // Not even the failure could be recorded.
    await send('/fail');
    throw error;
  });
  const outcome = run.faults.find(({ step }) => step === 'export')?.outcome;
  if (outcome === undefined) await send('');
  if (outcome === 'failed') await send('/fail');
  return result;
}

/** Runs steps one after another, each recorded in the ledger of runs. */
export class StepRunner {
  readonly faults: StepFault[] = [];
  changed = false;
  readonly #run = randomUUID();

  constructor(
    private readonly context: StepContext,
    private readonly due?: ReadonlySet<StepName>,
  ) {}

  isToDo(name: StepName): boolean {
    return !this.context.signal.aborted && this.due?.has(name) !== false;
  }

  /** The detail of the step's result; undefined when it threw, is not due, or was not begun after an interruption. */
  async step<Detail>(name: StepName, work: () => Promise<StepResult<Detail>>): Promise<Detail | undefined> {
    const { warehouse, now, signal, observer } = this.context;
    if (!this.isToDo(name)) return undefined;
    observer.onStepStart?.(name);
    await recordStepStart(warehouse, this.#run, name, now());
    const attempted = await attempt(work);
    const { result } = attempted;
    // A step told to stop may have left the rest undone without a fault, so it is never taken for done.
    const fault: unknown = signal.aborted ? signal.reason : attempted.fault;
    this.changed ||= result?.changed ?? false;
    const outcome: StepOutcome = fault === undefined ? 'done' : outcomeOf(fault, signal);
    if (outcome !== 'done') this.faults.push({ step: name, outcome, error: fault });
    const summary = [result?.summary, fault === undefined ? [] : messageOf(fault)].flat().join('; ');
    const end = { outcome, summary, resume_at: resumeAt(fault, now()), now: now() };
    await recordStepEnd(warehouse, this.#run, name, end);
    observer.onStepEnd?.(name, end);
    return result?.detail;
  }
}

async function attempt<Detail>(
  work: () => Promise<StepResult<Detail>>,
): Promise<{ result?: StepResult<Detail>; fault?: unknown }> {
  try {
    const result = await work();
    return { result, fault: result.fault };
  } catch (fault) {
    return { fault };
  }
}

function outcomeOf(fault: unknown, signal: AbortSignal): Exclude<StepOutcome, 'done'> {
  if (signal.aborted) return 'interrupted';
  return fault instanceof ReadershipError && fault.exitCode === 75 ? 'later' : 'failed';
}

/** When what a fault stopped may go on, where the budget or the server said so. */
function resumeAt(fault: unknown, now: Date): Date | null {
  if (fault instanceof PausedError) return fault.resumeAt;
  if (fault instanceof TurnError) return fault.turn.at;
  if (fault instanceof TryLaterError && fault.retryAfterMs !== undefined)
    return addMilliseconds(now, fault.retryAfterMs);
  return null;
}
