import { readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';

const START_STEP = readSql(import.meta.url, 'statements/start-step.sql');
const END_STEP = readSql(import.meta.url, 'statements/end-step.sql');

export type StepName = 'export' | 'improve' | 'poll' | 'report' | 'publish' | 'audit';

/** How a step ended: `later` asks to be tried again, `interrupted` was told to stop. */
export type StepOutcome = 'done' | 'failed' | 'later' | 'interrupted';

/** Records that a step begins. A killed process leaves it `running`. */
export const recordStepStart = (
  warehouse: Warehouse,
  run: string,
  step: StepName,
  now: Date,
): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(START_STEP, { run, step, now }));

/** Records how a step ended, in a sentence. */
export const recordStepEnd = (
  warehouse: Warehouse,
  run: string,
  step: StepName,
  end: { readonly outcome: StepOutcome; readonly summary: string; readonly now: Date },
): Promise<void> =>
  warehouse.transaction((transaction) => transaction.execute(END_STEP, { run, step, ...end }));
