import { PausedError, RefusedError } from '../api/errors.js';
import { addDays, type Day, daysBetween, dayOf, type DayRange, lastEndedDay } from '../day.js';
import { KEPT_FROM, NOT_ADDITIVE, readFact, readPageSize, recordFact } from './facts.js';
import { keptNote } from './first-day.js';
import { readDayLedger, removeDays, storeEmptyDays } from './ledger.js';
import { type DayResult, loadDays, type LoadOutcome, type LoadTask, MOST_IN_A_ROW } from './load.js';
import {
  type DayLedger,
  type ExportPlan,
  type ExportRange,
  type PlannedDay,
  planExport,
  planReload,
  requestsFor,
} from './plan.js';
import {
  AdditivityError,
  equalCounts,
  expectAdditive,
  NO_VIEWS,
  runsOfNeighbors,
  totalsIfAnswered,
} from './totals.js';
import { type Check, checkRecentDays, lookAgain, readLastVerification } from './verify.js';

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
  /** Requests a night for days that the check of sums does not look into, if nothing else needs them. */
  readonly spareRequests?: number;
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
  const { warehouse, project, now, range, reload = false } = task;
  const latest = task.latestTime?.();
  const ledger = await readDayLedger(warehouse, project);
  const removed = latest === undefined ? [] : [...ledger.keys()].filter((day) => day >= dayOf(latest));
  await removeDays(warehouse, project, removed);
  const planned = async (whole: ExportRange): Promise<ExportPlan> => {
    const { rows: pageSize } = await readPageSize(warehouse, project, now());
    const known = await readDayLedger(warehouse, project);
    if (reload) return planReload(known, whole, { pageSize });
    const isBackfilling = task.isBackfilling === true || range.rest !== undefined;
    return planExport(known, whole, now(), { isBackfilling, settleDays: task.settleDays, pageSize });
  };
  let plan = await planned(range);
  if (range.rest === undefined) task.onPlan?.(plan);
  if (reload) return { plan, ...(await loadDays(task, plan.days)), removed };
  const results: DayResult[] = [];
  const load = async (days: readonly PlannedDay[]): Promise<unknown> => {
    const { results: loaded, stopped } = await loadDays(task, days);
    results.push(...loaded);
    return stopped;
  };

  // While the first day is unknown, the latest ones come before the search for it.
  const latestDays = plan.days.map((one) =>
    range.rest === undefined ? one : { ...one, priority: 'urgent' as const },
  );
  const untrusted = await whyUntrusted(task, ledger);
  const urgent = untrusted ?? (await load(latestDays.filter(({ priority }) => priority === 'urgent')));
  if (urgent !== undefined) return { plan, results, stopped: urgent, removed };
  yield;

  const last = await readLastVerification(warehouse, project);
  const check = last !== undefined && dayOf(last) === dayOf(now()) ? undefined : await checkRecentDays(task);
  results.push(...(check?.repaired.results ?? []));
  const stopped = check?.repaired.stopped;
  // A check that fails for another reason does not delay the remaining days.
  if (stopped instanceof PausedError || stopped instanceof AdditivityError || task.signal?.aborted === true)
    return { plan, results, stopped, check, removed };
  yield;

  try {
    const whole = (await range.rest?.()) ?? range;
    if (range.rest !== undefined) await dropEarlier(task, results, whole.first);
    const { days } = await planned(whole);
    if (range.rest !== undefined) {
      const early = plan.days.filter(({ day }) => day >= whole.first);
      plan = { ...plan, range: whole, days: [...early, ...days] };
      task.onPlan?.(plan);
    }
    // Without a search, only days that were planned: those read just now are not read again.
    const before = new Map(latestDays.map(({ day, priority }) => [day, priority]));
    const rest = days.filter(
      ({ day, priority }) => priority === 'backfill' && (before.get(day) ?? 'backfill') === 'backfill',
    );
    const hasHoles = task.isBackfilling === true || rest.some(({ due }) => due === 'missing');
    const filled = await fill({ ...task, range: whole }, rest, results);
    if (filled.note !== undefined) plan = { ...plan, range: { ...whole, note: filled.note } };
    const isSpare = !hasHoles && check !== undefined && filled.stopped === undefined;
    const spare = (task.spareRequests ?? 0) - (await requestsToFinish(task, plan, results));
    const looked: LoadOutcome = isSpare && spare > 0 ? await lookAgain(task, spare) : { results: [] };
    results.push(...looked.results);
    return { plan, results, stopped: filled.stopped ?? looked.stopped ?? stopped, check, removed };
  } catch (error) {
    return { plan, results, stopped: error, check, removed };
  }
}

/** Forgets days without views that were loaded while the first day was unknown, and turned out to be before it. */
async function dropEarlier({ warehouse, project }: ExportTask, results: DayResult[], first: Day) {
  const ledger = await readDayLedger(warehouse, project);
  const early = [...ledger.values()].filter((record) => record.day < first && (record.pages ?? 0) === 0);
  const days = early.map(({ day }) => day);
  await removeDays(warehouse, project, days);
  for (const result of results.filter(({ day }) => days.includes(day)))
    results.splice(results.indexOf(result), 1);
}

/** How many requests it took to read the days in full that became final, after their first page. */
async function requestsToFinish(
  { warehouse, project, now }: ExportTask,
  plan: ExportPlan,
  results: readonly DayResult[],
): Promise<number> {
  const { rows: pageSize } = await readPageSize(warehouse, project, now());
  const settling = new Set(plan.days.filter(({ due }) => due === 'provisional').map(({ day }) => day));
  return results.reduce(
    (sum, result) =>
      settling.has(result.day) && result.outcome !== 'failed' && result.state === 'final'
        ? sum + requestsFor(result.rows, pageSize) - 1
        : sum,
    0,
  );
}

/** Why no day of the platform may be stored: the error of a check, which is needed before the first day, or after a failed one. */
async function whyUntrusted(task: ExportTask, ledger: DayLedger): Promise<unknown> {
  const { warehouse, project, client, now, settleDays, signal } = task;
  const suspect = await readFact(warehouse, project, NOT_ADDITIVE, now());
  if (suspect === undefined && [...ledger.values()].some((record) => record.is_stored)) return undefined;
  try {
    await expectAdditive(client, suspect ?? addDays(lastEndedDay(now()), -settleDays - 1), { signal });
    if (suspect !== undefined) await recordFact(warehouse, project, NOT_ADDITIVE, undefined, now());
    return undefined;
  } catch (error) {
    return error;
  }
}

/**
 * Loads the days of the past. A load ends early after a few empty or refused days in a row: an empty stretch then costs a
 * few requests for totals, and days that the platform no longer keeps are skipped.
 */
async function fill(
  task: ExportTask,
  days: readonly PlannedDay[],
  results: DayResult[],
): Promise<{ readonly stopped?: unknown; readonly note?: string }> {
  for (let left = days; left.length > 0;) {
    const loaded = await loadDays(task, left);
    results.push(...loaded.results);
    if (loaded.stopped !== undefined) return { stopped: loaded.stopped };
    if (loaded.results.length === 0) break;
    const done = new Set(loaded.results.map(({ day }) => day));
    left = left.filter(({ day }) => !done.has(day));
    const newestRefused = runsOf(results, isRefused).at(-1)?.at(-1);
    if (newestRefused !== undefined && (await isBeforeKept(task, newestRefused))) {
      const refused = results.filter((result) => result.day <= newestRefused && isRefused(result));
      for (const result of refused) results.splice(results.indexOf(result), 1);
      return { note: keptNote(addDays(newestRefused, 1)) };
    }
    const oldestEmpty = runsOf(loaded.results, isEmpty)[0]?.[0];
    const stretch = oldestEmpty === undefined ? undefined : await emptyBefore(task, oldestEmpty);
    if (stretch === undefined) continue;
    await storeEmptyDays(task.warehouse, task.project, stretch, task.now());
    left = left.filter(({ day }) => day < stretch.first || day > stretch.last);
  }
  return {};
}

const isEmpty = (result: DayResult): boolean => result.outcome === 'added' && result.rows === 0;

const isRefused = (result: DayResult): boolean =>
  result.outcome === 'failed' && result.error instanceof RefusedError;

/** The neighboring days like this, if there are enough in a row. */
function runsOf(results: readonly DayResult[], isLikeThis: (result: DayResult) => boolean): Day[][] {
  const days = results.filter(isLikeThis).map(({ day }) => day);
  return runsOfNeighbors(days.sort().map((day) => ({ day })))
    .filter((run) => run.length >= MOST_IN_A_ROW)
    .map((run) => run.map(({ day }) => day));
}

/** Whether the platform refuses the first day too, so that it keeps none before `refused`. Those are then forgotten here. */
async function isBeforeKept(task: ExportTask, refused: Day): Promise<boolean> {
  const { client, warehouse, project, range, signal, now } = task;
  const first = { first: range.first, last: range.first };
  if ((await totalsIfAnswered(client, first, { signal })) !== undefined) return false;
  const ledger = [...(await readDayLedger(warehouse, project)).values()];
  const notStored = ledger.filter((record) => !record.is_stored && record.day <= refused);
  await removeDays(
    warehouse,
    project,
    notStored.map(({ day }) => day),
  );
  await recordFact(warehouse, project, KEPT_FROM, addDays(refused, 1), now());
  return true;
}

/** The empty days right before a day, found with a few requests for totals. */
async function emptyBefore(task: ExportTask, day: Day): Promise<DayRange | undefined> {
  const { client, range, signal } = task;
  const last = addDays(day, -1);
  const most = daysBetween(range.first, last) + 1;
  const isEmptyFor = async (days: number): Promise<boolean> => {
    const totals = await totalsIfAnswered(
      client,
      { first: addDays(last, 1 - days), last },
      { signal, priority: 'backfill' },
    );
    return totals !== undefined && equalCounts(totals, NO_VIEWS);
  };
  let known = 0;
  let beyond = Math.min(2 * MOST_IN_A_ROW, most + 1);
  while (beyond <= most && (await isEmptyFor(beyond)))
    [known, beyond] = [beyond, beyond < most ? Math.min(2 * beyond, most) : most + 1];
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2);
    if (await isEmptyFor(middle)) known = middle;
    else beyond = middle;
  }
  return known === 0 ? undefined : { first: addDays(last, 1 - known), last };
}
