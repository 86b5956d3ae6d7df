import { PausedError } from '../api/errors.js';
import { type Day, dayOf } from '../day.js';
import { readDayLedger, removeDaysFrom } from './ledger.js';
import { loadDays, type LoadOutcome, type LoadTask } from './load.js';
import {
  expectedPages,
  type ExportPlan,
  type ExportRange,
  planExport,
  planReload,
  requestsFor,
} from './plan.js';
import { type Check, checkRecentDays, readLastVerification } from './verify.js';

/** What an export of one project did. `check` is absent if the past was already checked today, or was not reached. */
export interface ExportOutcome extends LoadOutcome {
  readonly plan: ExportPlan;
  readonly check?: Check | undefined;
  /** Days removed again: an earlier export with a clock that was ahead had stored them before they ended. */
  readonly removed: readonly Day[];
}

export interface ExportTask extends LoadTask {
  readonly range: ExportRange;
  /** Whether to read every day of the range again, and nothing else. */
  readonly reload?: boolean | undefined;
  /** Whether a project that shares the limit has days that were never loaded. */
  readonly isBackfilling?: boolean | undefined;
  /** The later of this machine's clock and the platform's; undefined while only one is known. */
  readonly latestTime?: (() => Date | undefined) | undefined;
  readonly onPlan?: ((plan: ExportPlan) => void) | undefined;
}

/**
 * Loads the days of a range that are due, in three stages: first the latest and those that may have changed; then, once a
 * day, it compares the settled recent past with the totals of the platform and loads again what differs; then it fills in
 * the past. After each it yields to wait for the other projects, so that no project's past comes before another's latest days.
 */
export async function* exportInStages(task: ExportTask): AsyncGenerator<undefined, ExportOutcome> {
  const { warehouse, project, now } = task;
  const latest = task.latestTime?.();
  const removed = latest === undefined ? [] : await removeDaysFrom(warehouse, project, dayOf(latest));
  const ledger = await readDayLedger(warehouse, project);
  const { range, reload = false } = task;
  const plan = reload ? planReload(ledger, range) : planExport(ledger, range, now(), task.isBackfilling);
  task.onPlan?.(plan);
  if (reload) return { plan, ...(await loadDays(task, plan.days)), removed };
  const urgent = await loadDays(
    task,
    plan.days.filter(({ priority }) => priority === 'urgent'),
  );
  if (urgent.stopped !== undefined) return { plan, ...urgent, removed };
  yield;
  const last = await readLastVerification(warehouse, project);
  const check = last !== undefined && dayOf(last) === dayOf(now()) ? undefined : await checkRecentDays(task);
  const results = [...urgent.results, ...(check?.repaired.results ?? [])];
  const stopped = check?.repaired.stopped;
  // A check that fails for another reason does not delay the remaining days.
  if (stopped instanceof PausedError || task.signal?.aborted === true)
    return { plan, results, stopped, check, removed };
  yield;
  const length = requestsFor(expectedPages(await readDayLedger(warehouse, project)));
  const rest = plan.days.filter(({ priority }) => priority === 'backfill');
  // In a first export, the length of a day is only known now.
  const backfill = await loadDays(
    task,
    rest.map((planned) => (planned.due === 'missing' ? { ...planned, requests: length } : planned)),
  );
  return {
    plan,
    results: [...results, ...backfill.results],
    stopped: backfill.stopped ?? stopped,
    check,
    removed,
  };
}
