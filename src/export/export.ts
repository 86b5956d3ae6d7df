import { AdditivityError } from './totals.js';
import { PausedError } from '../api/errors.js';
import { readPageSize } from './facts.js';
import { backfill } from './backfill.js';
import { keptNote } from './first-day.js';
import { readDayLedger } from './ledger.js';
import { type DayResult, loadDays, type LoadOutcome, type LoadTask } from './load.js';
import { type ExportPlan, type ExportRange, type PlannedDay, expectedRows, planExport } from './plan.js';
import { checkRecentDays, type CheckedDays } from './verify.js';

/** What an export of one project did. `check` is absent if the past was already checked today, or was not reached. */
export interface ExportOutcome extends LoadOutcome {
  readonly plan: ExportPlan;
  readonly check?: CheckedDays | undefined;
}

export interface ExportTask extends LoadTask {
  readonly range: ExportRange;
  /** Whether to read every day of the range again, and nothing else. */
  readonly reload?: boolean | undefined;
  readonly onPlan?: ((plan: ExportPlan) => void) | undefined;
}

/**
 * Loads the days of a range that are due. First, once a day, it compares recent final days with the platform's totals; if
 * these cannot be trusted, nothing is stored. Then it loads the latest days, and those that may have changed or differ.
 * Last, it fills in the past. It yields before that, so that no project's past comes before another's latest days.
 */
export async function* exportInStages(task: ExportTask): AsyncGenerator<undefined, ExportOutcome> {
  const { range, reload = false, signal } = task;
  let plan = await planOf(task, range);
  const results: DayResult[] = [];
  const load = async (days: readonly PlannedDay[]): Promise<readonly DayResult[]> => {
    const loaded = await loadDays(task, days);
    results.push(...loaded.results);
    if (loaded.stopped instanceof Error) throw loaded.stopped;
    return loaded.results;
  };
  const isLatest = ({ stage }: PlannedDay) => stage === 'latest' || range.rest !== undefined;
  let check: CheckedDays | undefined;
  let stopped: unknown;
  try {
    if (!reload) {
      check = await checkRecentDays(task).catch((error: unknown) => {
        // A check that fails for another reason does not delay the days.
        if (error instanceof PausedError || error instanceof AdditivityError) throw error;
        signal?.throwIfAborted();
        stopped = error;
        return undefined;
      });
      if (check?.differing.length !== 0) plan = await planOf(task, range);
    }
    if (range.rest === undefined) task.onPlan?.(plan);
    await load(reload ? plan.days : plan.days.filter(isLatest));
    if (reload) return { plan, results };
    yield;

    const whole = (await range.rest?.()) ?? range;
    if (range.rest !== undefined) {
      plan = await planOf(task, whole, results);
      task.onPlan?.(plan);
    }
    const read = new Set(results.map(({ day }) => day));
    const { days } = await planOf(task, whole);
    // Those that were read just now are not read again.
    const rest = days.filter(({ day }) => !read.has(day));
    const kept = await backfill(task, whole, rest, results, load);
    if (kept !== undefined) plan = { ...plan, range: { ...whole, note: keptNote(kept) } };
  } catch (error) {
    stopped = error;
  }
  return { plan, results, stopped, check };
}

/** The plan of a range, in which days that were read just now are days to load, not read before. */
async function planOf(
  task: ExportTask,
  range: ExportRange,
  read: readonly DayResult[] = [],
): Promise<ExportPlan> {
  const { history, state, project, now, settleDays, reload = false } = task;
  const { rows: pageSize } = readPageSize(state, project, now());
  const ledger = await readDayLedger({ history, state }, project);
  const others = new Map(ledger);
  for (const { day } of read) others.delete(day);
  const options = { settleDays, pageSize, reload, expected: expectedRows(ledger) };
  return planExport(others, range, now(), options);
}
