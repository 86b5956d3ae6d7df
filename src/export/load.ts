import { setMaxListeners } from 'node:events';
import type { LimitFunction } from 'p-limit';
import pMap from 'p-map';
import { PausedError, RefusedError } from '../api/errors.js';
import type { ViewCounts } from '../api/schema.js';
import { type Day, lastEndedDay } from '../day.js';
import { messageOf } from '../errors.js';
import type { StoredDay, StoredState } from '../history/days.js';
import { readFact, recordFact } from '../state/platform.js';
import { keepPages, readUnfinishedDays, recordDayFailure } from '../state/days.js';
import {
  DISAGREEMENT,
  type Disagreement,
  type PageSize,
  PAGING,
  readPageSize,
  ShownPageSize,
} from './paging.js';
import { DayFailures, type ExportedProject } from './failures.js';
import { isSmaller, Retention } from './retention.js';
import {
  confirmDay,
  isAsStored,
  keepDay,
  type KeptOutcome,
  readStoredViews,
  storeDay,
  type StoreOutcome,
  wasSmaller,
} from './store-day.js';
import { keptPagesOf } from './pages-of-day.js';
import { isSettled, type PlannedDay } from './plan.js';
import { DayWalks } from './walk.js';

/** The outcome of one day. */
export type DayResult = { readonly day: Day } & (
  | { readonly outcome: StoreOutcome | KeptOutcome; readonly state: StoredState; readonly rows: number }
  | { readonly outcome: 'failed'; readonly error: unknown }
);

/** Whether a day that was read for the first time has no views. */
export const isEmpty = (result: DayResult): boolean => result.outcome === 'added' && result.rows === 0;

export const isRefused = (result: DayResult): boolean =>
  result.outcome === 'failed' && result.error instanceof RefusedError;

/** What a load did. `stopped` is why it ended before its last day; the days not reached are due next time. */
export interface LoadOutcome {
  readonly results: readonly DayResult[];
  readonly stopped?: unknown;
}

/** The error that stopped a load comes first, before the failures of single days. */
export function errorsOfLoad({ results, stopped }: LoadOutcome): unknown[] {
  const ofDays = results.flatMap((result) => (result.outcome === 'failed' ? [result.error] : []));
  return stopped === undefined ? ofDays : [stopped, ...ofDays];
}

/** After so many days in a row that are empty or refused, when read for the first time, no other one is requested. */
export const MOST_IN_A_ROW = 4;

export interface LoadTask extends ExportedProject {
  readonly settleDays: number;
  /** Limits the days that are read at the same time. */
  readonly inTurn: LimitFunction;
  readonly onDay?: ((result: DayResult) => void) | undefined;
}

/**
 * Loads days in order. One that fails keeps its stored data, and the others continue. A failure that would affect every other day too (a refused
 * key, a server that is down, an interruption) stops the load, and days in progress are dropped.
 * When the platform wants a pause, no further day begins; what was read of those in progress is kept.
 */
export async function loadDays(task: LoadTask, days: readonly PlannedDay[]): Promise<LoadOutcome> {
  const { state, project, now, inTurn } = task;
  const known = readPageSize(state, project, now());
  const load = new Load(task, known, readUnfinishedDays(state, project));
  await pMap(days, (planned) => inTurn(() => load.add(planned)), { concurrency: inTurn.concurrency });
  const { rows, isShuffled } = load.pageSize;
  if (rows !== known.rows || isShuffled !== known.isShuffled)
    await recordFact(state, project, PAGING, { rows, isShuffled }, now());
  if (load.disagreement !== undefined && load.disagreement !== readFact(state, project, DISAGREEMENT, now()))
    await recordFact(state, project, DISAGREEMENT, load.disagreement, now());
  return { results: load.results, stopped: load.stopped };
}

/** The days that are read at the same time, and what they learn for each other. */
class Load {
  readonly results: DayResult[] = [];
  readonly pageSize: ShownPageSize;
  disagreement: Disagreement | undefined;
  #paused: PausedError | undefined;
  #isHalted = false;
  readonly #stopping = new AbortController();
  readonly #signal: AbortSignal;
  readonly #failures: DayFailures;
  readonly #retention: Retention;
  #withoutViewsInARow = 0;

  constructor(
    private readonly task: LoadTask,
    pageSize: PageSize,
    private readonly unfinished: ReadonlyMap<Day, number>,
  ) {
    this.pageSize = new ShownPageSize(pageSize);
    const stopping = this.#stopping.signal;
    this.#signal = task.signal ? AbortSignal.any([task.signal, stopping]) : stopping;
    // Every request listens to it, some until shortly after they have ended; Node.js would warn about more than ten.
    setMaxListeners(0, this.#signal);
    const project = { ...task, signal: this.#signal };
    this.#failures = new DayFailures(project);
    this.#retention = new Retention(project);
  }

  /** Why no further day begins. */
  get stopped(): unknown {
    return this.#signal.aborted ? (this.#signal.reason as unknown) : this.#paused;
  }

  /** Reads and stores a day, unless the load has ended. A failure that would affect every other day ends it. */
  async add(planned: PlannedDay): Promise<void> {
    if (this.#isHalted || this.stopped !== undefined) return;
    try {
      const result = await this.#read(planned).catch((error: unknown) => this.#failed(planned, error));
      if (result === undefined) return;
      if (result.outcome !== 'failed') this.#failures.end();
      this.results.push(result);
      this.task.onDay?.(result);
    } catch (error) {
      this.#isHalted = true;
      this.#stop(error);
    }
  }

  /** A pause only keeps further days from beginning; any other failure also ends those in progress. */
  #stop(error: unknown): void {
    if (error instanceof PausedError) this.#paused ??= error;
    else this.#stopping.abort(error);
  }

  /** Records a failure that concerns only its day, unless the platform no longer keeps it. Throws any other one. */
  async #failed({ day, due }: PlannedDay, error: unknown): Promise<DayResult | undefined> {
    const { state, project, now } = this.task;
    // Once the export stops, a pending request ends with the reason of the stop: the failure of another day.
    if (this.#signal.aborted || !(await this.#failures.concernsOnly(day, error))) throw error;
    if (error instanceof RefusedError && (await this.#retention.isDeleted(day))) {
      this.#count(due === 'missing');
      const known = await this.#knownOf(day);
      return known && this.#keep(known, 'forgotten');
    }
    await recordDayFailure(state, { project, day, now: now() }, messageOf(error));
    this.#count(due === 'missing' && error instanceof RefusedError);
    if (await this.#failures.concernAllDays(day)) this.#stop(error);
    return { day, outcome: 'failed', error };
  }

  /** Ends a load after some days without views, before they are stored: the export then asks for many older days at once. */
  #count(isWithoutViews: boolean): void {
    this.#withoutViewsInARow = isWithoutViews ? this.#withoutViewsInARow + 1 : 0;
    if (this.#withoutViewsInARow >= MOST_IN_A_ROW) this.#isHalted = true;
  }

  async #read({ day, due }: PlannedDay): Promise<DayResult | undefined> {
    const { history, state, client, project, now, settleDays, inTurn } = this.task;
    const hasEnded = () => day <= lastEndedDay(now());
    if (!hasEnded()) return undefined;
    const settled = () => isSettled(day, now(), settleDays);
    // A day that becomes final is read in full, because two pages may have swapped views after the first page.
    const mayBeSame = due === 'provisional' && !settled();
    const found = due === 'inconsistent' ? await readStoredViews(history, { project, day }) : undefined;
    const isUnfinished = this.unfinished.has(day);
    const paths = await history.pathsOf(project);
    const walks = new DayWalks(client, day, {
      paths,
      signal: this.#signal,
      isAsStored: mayBeSame ? (first) => isAsStored(history, { project, day }, first) : undefined,
      found,
      pageSize: this.pageSize,
      kept: isUnfinished ? keptPagesOf(state, { project, day }) : undefined,
      // The last days use the connections of days that are done.
      atOnce: () => Math.max(1, Math.floor(inTurn.concurrency / inTurn.activeCount)),
    });
    const read = await walks
      .read()
      .catch(async (error: unknown) => {
        const { unfinished } = walks;
        // Pages of a day that cannot be read are of no use.
        if (unfinished.size > 0 || (isUnfinished && !this.#signal.aborted))
          await keepPages(state, { project, day }, unfinished);
        throw error;
      })
      .finally(() => {
        this.pageSize.add(day, walks.pageSize);
        // Totals of one page explain everything else.
        if (this.disagreement !== 'page totals') this.disagreement = walks.disagreement ?? this.disagreement;
      });
    this.#signal.throwIfAborted();
    // The response may have shown that the platform's clock is behind.
    if (!hasEnded()) return undefined;
    const at = { project, day, now: now() };
    const isSame = read === 'unchanged';
    const known = await this.#knownOf(day);
    if (!isSame && known !== undefined && isSmaller(read.totals, known)) {
      const kept = await this.#judge(known, read.totals, settled());
      if (kept !== undefined) return kept;
    }
    const isInDoubt = !isSame && read.doubt !== undefined;
    const dayState = isInDoubt ? 'inconsistent' : settled() ? 'final' : 'provisional';
    const isWithoutViews = !isSame && read.counts.ids.length === 0;
    this.#count(due === 'missing' && isWithoutViews);
    // What was deleted before it was read is missing, and is not stored as a day without views.
    if (isWithoutViews && known === undefined && (await this.#retention.isDeleted(day))) return undefined;
    if (isSame)
      return { day, outcome: 'unchanged', state: dayState, rows: await confirmDay(history, at, dayState) };
    const outcome = await storeDay({ history, state }, at, read, dayState);
    return { day, outcome, state: dayState, rows: read.counts.ids.length };
  }

  async #knownOf(day: Day): Promise<StoredDay | undefined> {
    return (await this.task.history.storedDays(this.task.project)).get(day);
  }

  /** Keeps the rows of a day of which the platform has fewer views; undefined if that is a correction. */
  async #judge(known: StoredDay, platform: ViewCounts, isSettled: boolean): Promise<DayResult | undefined> {
    const { day } = known;
    const before = wasSmaller(known, this.task.now());
    const verdict = await this.#retention.judge({ day, platform, isSettled, wasSmaller: before });
    if (verdict === 'corrected') return undefined;
    return this.#keep(known, verdict === 'deleted' ? 'forgotten' : 'fewer');
  }

  async #keep(known: StoredDay, outcome: KeptOutcome): Promise<DayResult> {
    const { history, project, now } = this.task;
    const state = await keepDay(history, { project, day: known.day, now: now() }, known, outcome);
    return { day: known.day, outcome, state, rows: known.pages };
  }
}
