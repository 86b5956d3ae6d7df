import { AdditivityError, largest, largestConfirmed, viewsIn } from './probe.js';
import { PausedError } from '../api/errors.js';
import { DISAGREEMENT, type Disagreement, readPageSize } from './paging.js';
import { type ExportRange, keptNote } from './range.js';
import { KEPT_FROM } from './retention.js';
import { readDayRecords } from './day-records.js';
import {
  type DayResult,
  isEmpty,
  isRefused,
  loadDays,
  type LoadOutcome,
  type LoadTask,
  MOST_IN_A_ROW,
} from './load.js';
import { type ExportPlan, planExport, type PlannedDay, runsOfNeighbors } from './plan.js';
import { type CheckedDays, checkRecentDays } from './verify.js';
import { addDays, type Day, type DayRange, daysBetween } from '../day.js';
import { readFact, recordFact } from '../state/platform.js';
import { forgetFailuresBefore, forgetPages, readUnfinishedDays } from '../state/days.js';
import { storeEmptyDays } from './store-day.js';

/** What an export of one project did. `check` is absent if the past was already checked today, or was not reached. */
export interface ExportOutcome extends LoadOutcome {
  readonly plan: ExportPlan;
  readonly check?: CheckedDays | undefined;
  /** What the answers have shown that cannot be right, if it was not known. */
  readonly disagreement?: Disagreement | undefined;
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
  const { range, reload = false, signal, state, project, now } = task;
  const known = readFact(state, project, DISAGREEMENT, now());
  const found = () => {
    const disagreement = readFact(state, project, DISAGREEMENT, now());
    return disagreement === known ? undefined : disagreement;
  };
  let plan = await planOf(task);
  const results: DayResult[] = [];
  const load = async (days: readonly PlannedDay[]): Promise<readonly DayResult[]> => {
    const loaded = await loadDays(task, days);
    results.push(...loaded.results);
    if (loaded.stopped instanceof Error) throw loaded.stopped;
    return loaded.results;
  };
  let check: CheckedDays | undefined;
  let stopped: unknown;
  try {
    if (!reload) {
      await forgetFinished(task, plan);
      check = await checkRecentDays(task).catch((error: unknown) => {
        // A check that fails for another reason does not delay the days.
        if (error instanceof PausedError || error instanceof AdditivityError) throw error;
        signal?.throwIfAborted();
        stopped = error;
        return undefined;
      });
      if (check?.differing.length !== 0) plan = await planOf(task);
    }
    task.onPlan?.(plan);
    await load(reload ? plan.days : plan.days.filter(({ stage }) => stage === 'latest'));
    if (reload) return { plan, results, disagreement: found() };
    yield;
    const past = plan.days.filter(({ stage }) => stage === 'past');
    const kept = await backfill(task, range, past, results, load);
    if (kept !== undefined) plan = { ...plan, range: { ...range, note: keptNote(kept) } };
  } catch (error) {
    stopped = error;
  }
  return { plan, results, stopped, check, disagreement: found() };
}

/** Forgets what was kept of days that are final: a process that was killed stored them, and could not say so. */
async function forgetFinished({ history, state, project }: ExportTask, plan: ExportPlan): Promise<void> {
  const unfinished = [...readUnfinishedDays(state, project).keys()];
  if (unfinished.length === 0) return;
  const records = await readDayRecords({ history, state }, project);
  const planned = new Set(plan.days.map(({ day }) => day));
  const finished = unfinished.filter((day) => records.get(day)?.state === 'final' && !planned.has(day));
  await state.transaction(() => {
    for (const day of finished) forgetPages(state, { project, day });
  });
}

async function planOf({
  history,
  state,
  project,
  range,
  now,
  settleDays,
  reload = false,
}: ExportTask): Promise<ExportPlan> {
  const { rows: pageSize } = readPageSize(state, project, now());
  const records = await readDayRecords({ history, state }, project);
  return planExport(records, range, now(), { settleDays, pageSize, reload });
}

/**
 * Loads the days of the past, with what `load` adds to `results`. A load ends early after a few empty or refused days in a
 * row: an empty stretch then costs a few requests for totals, and days that the platform no longer keeps are skipped.
 * Returns the first day that it keeps, if it refuses the first of the range.
 */
async function backfill(
  task: LoadTask,
  range: DayRange,
  days: readonly PlannedDay[],
  results: DayResult[],
  load: (days: readonly PlannedDay[]) => Promise<readonly DayResult[]>,
): Promise<Day | undefined> {
  let keptFrom: Day | undefined;
  for (let left = days; left.length > 0;) {
    const loaded = await load(left);
    if (loaded.length === 0) break;
    const done = new Set(loaded.map(({ day }) => day));
    left = left.filter(({ day }) => !done.has(day));
    keptFrom ??= await findKept(task, range, results);
    const first = keptFrom ?? range.first;
    const empty = await skipEmpty(task, first, loaded);
    left = left.filter(
      ({ day }) => day >= first && (empty === undefined || day < empty.first || day > empty.last),
    );
  }
  return keptFrom;
}

/** Finds the first day that the platform keeps, if it refused days and the first one too. Refused days are forgotten. */
async function findKept(
  { client, state, project, signal, now }: LoadTask,
  range: DayRange,
  results: DayResult[],
): Promise<Day | undefined> {
  const isKept = async (day: Day) =>
    (await viewsIn(client, { first: day, last: day }, { signal })) !== 'refused';
  const kept = results.filter((result) => !isRefused(result)).map(({ day }) => day);
  const oldest = kept.sort().at(0);
  const refused = results
    .filter(isRefused)
    .map(({ day }) => day)
    .filter((day) => oldest !== undefined && day < oldest);
  const newest = refused.sort().at(-1);
  if (oldest === undefined || newest === undefined || refused.length < MOST_IN_A_ROW) return undefined;
  if (await isKept(range.first)) return undefined;
  const most = daysBetween(newest, oldest) - 1;
  const keptDays = await largestConfirmed(
    (days) => isKept(addDays(oldest, -days)),
    Math.ceil(most / 2),
    most,
  );
  const first = addDays(oldest, -keptDays);
  await forgetFailuresBefore(state, project, first);
  await recordFact(state, project, KEPT_FROM, first, now());
  results.splice(0, results.length, ...results.filter(({ day }) => day >= first));
  return first;
}

/** Stores the days without views that come right before a few of them, found with a few requests for totals. */
async function skipEmpty(
  { client, history, state, project, signal, now }: LoadTask,
  first: Day,
  results: readonly DayResult[],
): Promise<DayRange | undefined> {
  const empty = results.filter(isEmpty).sort((one, other) => daysBetween(other.day, one.day));
  const stretch = runsOfNeighbors(empty).find((run) => run.length >= MOST_IN_A_ROW);
  if (stretch?.[0] === undefined) return undefined;
  const last = addDays(stretch[0].day, -1);
  const before = (length: number) => ({ first: addDays(last, 1 - length), last });
  const isEmptyFor = async (length: number) => (await viewsIn(client, before(length), { signal })) === 'none';
  const length = await largest(isEmptyFor, 2 * MOST_IN_A_ROW, daysBetween(first, last) + 1);
  if (length === 0) return undefined;
  await storeEmptyDays({ history, state }, project, before(length), now());
  return before(length);
}
