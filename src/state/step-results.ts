import { z } from 'zod';
import { readSql } from '../columns.js';
import type { State } from './state.js';

const STORE_STEP_RESULT = readSql(import.meta.url, 'statements/store-step-result.sql');
const KEEP_STEP_RESULT = readSql(import.meta.url, 'statements/keep-step-result.sql');
const CURRENT_STEPS = readSql(import.meta.url, 'statements/current-steps.sql');

/** The steps whose results are stored. Polling is due when its jobs are. */
export const RESULT_STEPS = ['export', 'improve', 'report', 'publish'] as const;
export type ResultStep = (typeof RESULT_STEPS)[number];

/** What the result of a step depended on, and when the step has something to do again in any case. */
export interface StepResultRow {
  readonly step: ResultStep;
  /** A digest of all that it depended on, but for the state. */
  readonly basis: string;
  /** Of `workspace.changes`; null if it does not depend on jobs, messages, emails and skips. */
  readonly changes: number | null;
  readonly dueAt: Date;
}

/** Stores the result of a step; call it inside a transaction. */
export const storeStepResult = (state: State, result: StepResultRow, now: Date): number =>
  state.run(STORE_STEP_RESULT, { ...result, now });

/** Gives the result of a step that did not have to run a new basis; call it inside a transaction. */
export const keepStepResult = (state: State, step: ResultStep, basis: string): number =>
  state.run(KEEP_STEP_RESULT, { step, basis });

/** The steps whose stored results are still right on this basis. */
export function currentSteps(state: State, basis: string, now: Date): ReadonlySet<ResultStep> {
  const row = z.object({ step: z.enum(RESULT_STEPS) });
  return new Set(state.all(CURRENT_STEPS, row, { basis, now }).map(({ step }) => step));
}
