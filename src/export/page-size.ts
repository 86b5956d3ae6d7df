import { RefusedError } from '../api/errors.js';
import { LIMITS } from '../api/schema.js';
import type { Day } from '../day.js';

/** Limits that servers accept, if they refuse the documented one without naming theirs. */
const USUAL_LIMITS = [100, 50, 10];

/** Whether the platform refused a request as invalid, whoever sends it. */
export const isInvalid = (error: unknown): error is RefusedError =>
  error instanceof RefusedError && [400, 416, 422].includes(error.status);

/** The limit to try after the platform refused a larger one; undefined if it refused something else. */
export function smallerLimit(error: unknown, limit: number): number | undefined {
  if (!isInvalid(error) || !/limit/i.test(error.words)) return undefined;
  const named = (error.words.match(/\d+/g) ?? []).map(Number).filter((one) => one > 0 && one < limit);
  return named.length > 0 ? Math.max(...named) : USUAL_LIMITS.find((one) => one < limit);
}

/**
 * The largest number of rows that the platform returns in one response, and their order, as its answers show. A day may be
 * an exception, so a limit counts for others only once two days have shown it.
 */
export class PageSize {
  readonly #limitedDays = new Map<number, Set<Day>>();

  constructor(
    public rows: number = LIMITS.viewsPage.max,
    /** Whether equal rows come in another order in each response. */
    public isShuffled = false,
  ) {}

  ofDay(day: Day): DayPageSize {
    return new DayPageSize(this, day);
  }

  showsLimit(rows: number, day: Day): void {
    const days = (this.#limitedDays.get(rows) ?? new Set()).add(day);
    this.#limitedDays.set(rows, days);
    if (days.size > 1) this.rows = Math.min(this.rows, rows);
  }
}

/** What is known about the pages of a day. */
export class DayPageSize {
  #rows = Infinity;
  readonly #shortPages = new Map<number, number>();

  constructor(
    private readonly all: PageSize,
    private readonly day: Day,
  ) {}

  get rows(): number {
    return Math.min(this.#rows, this.all.rows);
  }

  get isShuffled(): boolean {
    return this.all.isShuffled;
  }

  /** The platform refused a larger limit than this one, for rows that begin at `offset`. */
  limitTo(rows: number, offset: number): void {
    this.#rows = Math.min(this.#rows, rows);
    // Further on, the offset may have been the reason.
    if (offset === 0) this.all.showsLimit(rows, this.day);
  }

  /** A response that was not the last one had this many rows. The same number twice shows a silent limit. */
  saw(rows: number): void {
    if (rows >= this.rows) return;
    const times = (this.#shortPages.get(rows) ?? 0) + 1;
    this.#shortPages.set(rows, times);
    if (times > 1 && rows === Math.max(...this.#shortPages.keys())) this.limitTo(rows, 0);
  }

  /** Two walks of this day had equal rows in another order. */
  sawShuffling(): void {
    this.all.isShuffled = true;
  }
}
