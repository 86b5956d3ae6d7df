import { randomUUID } from 'node:crypto';
import { messageOf, ReadershipError } from '../errors.js';
import type { StepContext, StepResult } from './context.js';
import {
  isGoingOn,
  readFaults,
  recordStepEnd,
  recordStepStart,
  type StepName,
  type StepOutcome,
} from './runs.js';

/** A fault that a step met, and what it meant for the step. */
export interface StepFault {
  readonly step: StepName;
  readonly outcome: Exclude<StepOutcome, 'done'>;
  readonly error: unknown;
}

/** Runs steps one after another, each recorded in the ledger of runs. */
export class StepRunner {
  readonly faults: StepFault[] = [];
  /** Whether readers have something new to see: what a step stored, or that it has begun to fail, or no longer does. */
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
    const wasAtFault = await this.#isAtFault(name);
    await recordStepStart(warehouse, this.#run, name, now());
    const attempted = await attempt(work);
    const { result } = attempted;
    // A step told to stop may have left the rest undone without a fault, so it is never taken for done.
    const fault: unknown = signal.aborted ? signal.reason : attempted.fault;
    const outcome: StepOutcome = fault === undefined ? 'done' : outcomeOf(fault, signal);
    // A step that threw may have stored something before.
    this.changed ||= result?.changed ?? true;
    if (outcome !== 'done') this.faults.push({ step: name, outcome, error: fault });
    const summary = [result?.summary, fault === undefined ? [] : messageOf(fault)].flat().join('; ');
    const end = { outcome, summary, resume_at: resumeAtOf(fault), now: now() };
    await recordStepEnd(warehouse, this.#run, name, end);
    this.changed ||= wasAtFault !== (await this.#isAtFault(name));
    observer.onStepEnd?.(name, end);
    return result?.detail;
  }

  async #isAtFault(name: StepName): Promise<boolean> {
    const { warehouse, now } = this.context;
    const faults = await readFaults(warehouse, now());
    return faults.some((fault) => fault.step === name && isGoingOn(fault));
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

const resumeAtOf = (fault: unknown): Date | null =>
  fault instanceof ReadershipError ? (fault.resumeAt ?? null) : null;

/** The result of a step, with the worst of the faults that it met. */
export const withFaults = <Detail>(
  result: StepResult<Detail>,
  faults: readonly unknown[],
): StepResult<Detail> => (faults.length === 0 ? result : { ...result, fault: worstOf(faults) });

/** What somebody must mend comes before what mends itself: a pause must not hide it. */
const worstOf = (faults: readonly unknown[]): unknown =>
  faults.find((fault) => !(fault instanceof ReadershipError && fault.exitCode === 75)) ?? faults[0];
