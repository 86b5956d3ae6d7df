import { z } from 'zod';
import { OUTAGES } from '../warehouse/digests.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';

const START_STEP = readSql(import.meta.url, 'statements/start-step.sql');
const END_STEP = readSql(import.meta.url, 'statements/end-step.sql');
const END_KILLED = readSql(import.meta.url, 'statements/end-killed.sql');
const PRUNE_RUNS = readSql(import.meta.url, 'statements/prune-runs.sql');
const LAST_RUNS = readSql(import.meta.url, 'statements/last-runs.sql');

const STEPS = ['export', 'improve', 'poll', 'report', 'publish', 'audit'] as const;
export type StepName = (typeof STEPS)[number];

const OUTCOMES = ['done', 'failed', 'later', 'interrupted'] as const;
/** How a step ended: `later` is retried automatically, `interrupted` was asked to stop. */
export type StepOutcome = (typeof OUTCOMES)[number];

/** How a step ended, a summary, and when it may resume, if the budget or the server gave a time. */
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

export const readLastRuns = (reader: Reader, now: Date): Promise<LastRun[]> =>
  reader.query(LAST_RUNS, lastRunRow, { now });

/** Six steps with a thousand runs each, plus room for months until the next pruning. */
const MAX_RUNS = 10_000;

/**
 * Removes old runs if there are many, because every step reads all of them. Before the first step of a
 * process, those still running are of a process that was killed.
 */
export async function tidyRuns(warehouse: Warehouse): Promise<void> {
  const count = "SELECT count(*) AS runs, count(*) FILTER (outcome = 'running') AS killed FROM runs";
  const [row] = await warehouse.query(count, z.object({ runs: z.int(), killed: z.int() }));
  if (row === undefined) return;
  if (row.killed > 0) await warehouse.transaction((transaction) => transaction.execute(END_KILLED));
  if (row.runs > MAX_RUNS) await warehouse.transaction((transaction) => transaction.execute(PRUNE_RUNS));
}

/** Records that a step begins. */
export const recordStepStart = (warehouse: Warehouse, run: string, step: StepName, now: Date) =>
  warehouse.transaction((transaction) => transaction.execute(START_STEP, { run, step, now }));

/** Records how a step ended. */
export const recordStepEnd = (warehouse: Warehouse, run: string, step: StepName, end: StepEnd) =>
  warehouse.transaction((transaction) => transaction.execute(END_STEP, { run, step, ...end }));

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

export const readOutages = (reader: Reader, now: Date): Promise<Outage[]> =>
  reader.query(OUTAGES, outageRow, { now });
