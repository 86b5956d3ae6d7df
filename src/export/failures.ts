import type { ViewsClient } from '../api/client.js';
import { ContractError, PagingError, PausedError, RefusedError, TryLaterError } from '../api/errors.js';
import { addDays, type Day, lastEndedDay } from '../day.js';
import type { State } from '../state/state.js';
import type { HistoryStore } from '../history/store.js';
import { readDayRecords } from './day-records.js';
import { probeTotals } from './probe.js';

/** After this many failures in a row, another day is requested before the next one is tried. */
const CHECK_EVERY = 5;

/** After this many failures in a row, the load stops. */
const MAX_IN_A_ROW = 50;

/** A project, its platform, and where it is stored. */
export interface ExportedProject {
  readonly history: HistoryStore;
  readonly state: State;
  readonly client: ViewsClient;
  readonly project: string;
  readonly now: () => Date;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Distinguishes the failure of one day from a failure that would affect every day. If the error
 * does not show which, one request for the totals of another day does: a wrong key is refused there
 * too.
 */
export class DayFailures {
  #inARow = 0;
  /** Days that fail at the same time share the request for another one. */
  #probing: Promise<boolean> | undefined;

  constructor(private readonly task: ExportedProject & { readonly signal: AbortSignal }) {}

  /** A day was loaded: those that failed before it were exceptions. */
  end(): void {
    this.#inARow = 0;
  }

  /**
   * Whether an error concerns only `day`. Throws a `PausedError` if the deciding request would have to wait
   * too long.
   */
  async concernsOnly(day: Day, error: unknown): Promise<boolean> {
    if (error instanceof ContractError || error instanceof PagingError) return true;
    if (error instanceof RefusedError) return this.#isAnswered(day);
    if (!(error instanceof TryLaterError) || error.reason === 'unreachable') return false;
    const mayConcernAll = error.reason === 'rate-limited' || error.reason === 'not-taken';
    return !mayConcernAll || this.#isAnswered(day);
  }

  /** Whether so many days have failed, `day` being the last, that the others would fail too. */
  async concernAllDays(day: Day): Promise<boolean> {
    this.#inARow++;
    if (this.#inARow >= MAX_IN_A_ROW) return true;
    return this.#inARow % CHECK_EVERY === 0 && !(await this.#isAnswered(day));
  }

  /** Whether the platform answers a request for a day other than `day`. */
  #isAnswered(day: Day): Promise<boolean> {
    return (this.#probing ??= this.#probe(day).finally(() => (this.#probing = undefined)));
  }

  async #probe(day: Day): Promise<boolean> {
    const { client, signal } = this.task;
    const other = await this.#otherThan(day);
    try {
      await probeTotals(client, { first: other, last: other }, { signal });
      return true;
    } catch (error) {
      if (signal.aborted || error instanceof PausedError) throw error;
      return false;
    }
  }

  /** The day to request instead of `day`: the newest one that is stored, or if there is none, one of a week ago. */
  async #otherThan(day: Day): Promise<Day> {
    const { history, state, project, now } = this.task;
    const records = [...(await readDayRecords({ history, state }, project)).values()];
    const stored = records.findLast((record) => record.is_stored && record.day !== day);
    const weekAgo = addDays(lastEndedDay(now()), -7);
    return stored?.day ?? (day === weekAgo ? addDays(weekAgo, 1) : weekAgo);
  }
}
