import { type DayRange, dayOf } from '../day.js';
import { readDayLedger } from './ledger.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import { type ExportPlan, planExport } from './plan.js';
import { checkRecentDays, type Check, readLastVerification } from './verification.js';

/** What an export of one project did. `check` is absent when the past was checked today already, or not reached. */
export interface ExportOutcome extends LoadOutcome {
  readonly plan: ExportPlan;
  readonly check?: Check | undefined;
}

export interface ExportTask extends LoadTask {
  readonly range: DayRange;
  readonly onPlan?: ((plan: ExportPlan) => void) | undefined;
}

/**
 * Loads the days of a range that are due, then, once a day, holds the settled recent past against the totals of the
 * platform and loads again what differs.
 */
export async function exportHistory(task: ExportTask): Promise<ExportOutcome> {
  const { warehouse, project, now } = task;
  const plan = planExport(await readDayLedger(warehouse, project), task.range, now());
  task.onPlan?.(plan);
  const loaded = await loadDays(task, plan.days);
  if (loaded.stopped !== undefined) return { plan, ...loaded };
  const last = await readLastVerification(warehouse, project);
  if (last !== undefined && dayOf(last) === dayOf(now())) return { plan, ...loaded };
  const check = await checkRecentDays(task);
  const results = [...loaded.results, ...check.repaired.results];
  return check.stopped === undefined
    ? { plan, results, check }
    : { plan, results, check, stopped: check.stopped };
}
