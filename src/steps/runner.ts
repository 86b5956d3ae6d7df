import { randomUUID } from 'node:crypto';
import type { ProjectSettings } from '../config/schema.js';
import { messageOf, ReadershipError } from '../errors.js';
import type { StepContext, StepResult } from './context.js';
import { recordStepEnd, recordStepStart, type StepName, type StepOutcome } from './runs.js';

/** What kept a step from finishing, and what that means for it. */
export interface StepOutage {
  readonly step: StepName;
  readonly outcome: Exclude<StepOutcome, 'done'>;
  readonly error: unknown;
}

/** Runs steps one after another, each recorded in the ledger of runs. */
export class StepRunner {
  readonly outages: StepOutage[] = [];
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
    // An interrupted step may have left work undone without an error, so it never counts as done.
    const error: unknown = signal.aborted ? signal.reason : attempted.error;
    const outcome: StepOutcome = error === undefined ? 'done' : outcomeOf(error, signal);
    if (outcome !== 'done') this.outages.push({ step: name, outcome, error });
    const summary = [result?.summary, error === undefined ? [] : messageOf(error)].flat().join('; ');
    const resumeAt = error instanceof ReadershipError ? error.resumeAt : undefined;
    const end = { outcome, summary, resume_at: resumeAt ?? null, now: now() };
    await recordStepEnd(warehouse, this.#run, name, end);
    observer.onStepEnd?.(name, end);
    return result?.detail;
  }

  /**
   * As `step`, for work that somebody asked for beside the schedule. It is not recorded as a run, so the step itself
   * stays due.
   */
  async aside<Detail>(name: StepName, work: () => Promise<StepResult<Detail>>): Promise<Detail | undefined> {
    const { signal } = this.context;
    const { result, error: thrown } = await attempt(work);
    const error: unknown = signal.aborted ? signal.reason : thrown;
    if (error !== undefined) this.outages.push({ step: name, outcome: outcomeOf(error, signal), error });
    return result?.detail;
  }
}

async function attempt<Detail>(
  work: () => Promise<StepResult<Detail>>,
): Promise<{ result?: StepResult<Detail>; error?: unknown }> {
  try {
    const result = await work();
    return { result, error: result.error };
  } catch (error) {
    return { error };
  }
}

const isTemporary = (error: unknown): boolean => error instanceof ReadershipError && error.exitCode === 75;

function outcomeOf(error: unknown, signal: AbortSignal): Exclude<StepOutcome, 'done'> {
  if (signal.aborted) return 'interrupted';
  return isTemporary(error) ? 'later' : 'failed';
}

/**
 * Does the work for one project after another, until an interruption. An error in one does not keep the others from
 * their turn.
 */
export async function eachProject<Result>(
  { projects, signal }: StepContext,
  work: (project: ProjectSettings) => Promise<Result>,
): Promise<{ results: Result[]; errors: unknown[] }> {
  const results: Result[] = [];
  const errors: unknown[] = [];
  for (const project of projects) {
    if (signal.aborted) break;
    try {
      results.push(await work(project));
    } catch (error) {
      errors.push(error);
    }
  }
  return { results, errors };
}

/** The result of a step, with the worst of its errors: a pause must not hide what a person has to fix. */
export const withOutage = <Detail>(
  result: StepResult<Detail>,
  errors: readonly unknown[],
): StepResult<Detail> =>
  errors.length === 0
    ? result
    : { ...result, error: errors.find((error) => !isTemporary(error)) ?? errors[0] };
