import { z } from 'zod';
import { readSql, timestampColumn } from '../columns.js';
import type { State } from './state.js';

const START_STEP = "INSERT INTO runs (run, step, started_at, outcome) VALUES ($run, $step, $now, 'running')";
const END_STEP = readSql(import.meta.url, 'statements/end-step.sql');
const LAST_RUNS = readSql(import.meta.url, 'statements/last-runs.sql');
const RECENT_RUNS = readSql(import.meta.url, 'statements/recent-runs.sql');
const OUTAGES = readSql(import.meta.url, 'statements/outages.sql');
const STORE_STEP_RESULT = readSql(import.meta.url, 'statements/store-step-result.sql');
const KEEP_STEP_RESULT = 'UPDATE step_results SET basis = $basis WHERE step = $step';
const CURRENT_STEPS = readSql(import.meta.url, 'statements/current-steps.sql');

const STEPS = ['export', 'improve', 'poll', 'report', 'publish', 'audit'] as const;
export type StepName = (typeof STEPS)[number];

const OUTCOMES = ['done', 'failed', 'later', 'interrupted'] as const;
/** How a step ended: `later` is retried automatically, `interrupted` was asked to stop. */
export type StepOutcome = (typeof OUTCOMES)[number];

/** How a step ended, a summary, and when it may resume, if the platform or our own limit gave a time. */
export interface StepEnd {
  readonly outcome: StepOutcome;
  readonly summary: string;
  readonly resume_at: Date | null;
  readonly now: Date;
}

const lastRunRow = z.object({
  step: z.enum(STEPS),
  started_at: timestampColumn,
  outcome: z.enum(['running', ...OUTCOMES]),
  resume_at: timestampColumn.nullable(),
  summary: z.string().nullable(),
  done_at: timestampColumn.nullable(),
  failures: z.int(),
});
/**
 * The latest run of a step; `done_at` is the start of the latest one that succeeded, `failures` the
 * number of runs since then that failed or were paused without a resume time.
 */
export type LastRun = z.infer<typeof lastRunRow>;

export const readLastRuns = (state: State, now: Date): LastRun[] => state.all(LAST_RUNS, lastRunRow, { now });

const recentRunRow = lastRunRow.pick({ step: true, started_at: true, outcome: true, summary: true }).extend({
  ended_at: timestampColumn.nullable(),
});

/** The five last runs of each step, the newest first. */
export const readRecentRuns = (state: State): z.infer<typeof recentRunRow>[] =>
  state.all(RECENT_RUNS, recentRunRow);

/** Records that a step begins. */
export const recordStepStart = (state: State, run: string, step: StepName, now: Date): Promise<number> =>
  state.change(START_STEP, { run, step, now });

/** Records how a step ended. */
export const recordStepEnd = (state: State, run: string, step: StepName, end: StepEnd): Promise<number> =>
  state.change(END_STEP, { run, step, ...end });

const outageRow = z.object({
  step: z.string(),
  words: z.string().nullable(),
  since: timestampColumn,
  over_at: timestampColumn.nullable(),
});
/**
 * The latest outage of a step. It ended at `over_at`, the start of the run that succeeded; null if
 * it continues.
 */
export type Outage = z.infer<typeof outageRow>;

export const readOutages = (state: State, now: Date): Outage[] => state.all(OUTAGES, outageRow, { now });

/** The steps whose results are stored. Polling is due when its jobs are. */
export const RESULT_STEPS = ['export', 'improve', 'report', 'publish'] as const;
export type ResultStep = (typeof RESULT_STEPS)[number];

/** What the result of a step depended on, and when the step has something to do again in any case. */
interface StepResultRow {
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
