import { randomUUID } from 'node:crypto';
import { messageOf, ReadershipError } from '../errors.js';
import type { StepContext, StepResult } from './context.js';
import { recordStepEnd, recordStepStart, type StepName, type StepOutcome } from './runs.js';
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
}

/**
 * The one loop: export, improve, poll, report, publish. Each step finds what is due in stored state, so the loop may
 * run at any time, twice, or after a week offline. A step that fails is recorded and does not stop the next; an
 * interruption does.
 */
export async function runLoop(context: StepContext, options: LoopOptions): Promise<LoopOutcome> {
  const run = new StepRunner(context);
  const exported = await run.step('export', () => exportStep(context));
  const improved = await run.step('improve', () => improveStep(context, options.apply));
  const polled = await run.step('poll', () => pollStep(context, options.waitMs));
  const reported = await run.step('report', () => reportStep(context));
  await run.step('publish', () => publishStep(context, run.changed));
  return {
    exported: exported ?? [],
    improved: improved ?? [],
    polled,
    reported,
    faults: run.faults,
  };
}

/** Runs steps one after another, each recorded in the ledger of runs. */
export class StepRunner {
  readonly faults: StepFault[] = [];
  changed = false;
  readonly #run = randomUUID();

  constructor(private readonly context: StepContext) {}

  /** The detail of the step's result; undefined when it threw, or was not begun because of an interruption. */
  async step<Detail>(name: StepName, work: () => Promise<StepResult<Detail>>): Promise<Detail | undefined> {
    const { warehouse, now, signal } = this.context;
    if (signal.aborted) return undefined;
    await recordStepStart(warehouse, this.#run, name, now());
    const { result, fault } = await attempt(work);
    this.changed ||= result?.changed ?? false;
    const outcome = fault === undefined ? 'done' : outcomeOf(fault, signal);
    if (outcome !== 'done') this.faults.push({ step: name, outcome, error: fault });
    const summary = [result?.summary, fault === undefined ? [] : messageOf(fault)].flat().join('; ');
    await recordStepEnd(warehouse, this.#run, name, { outcome, summary, now: now() });
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
