import { z } from 'zod';
import { RefusedError } from '../api/errors.js';
import { LIMITS } from '../api/schema.js';
import type { Day } from '../day.js';
import { type PlatformFact, readFact } from '../state/platform.js';
import type { State } from '../state/state.js';

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

/** How the platform returns rows, as its answers show. */
export interface PageSize {
  /** The largest number of rows in one response. */
  readonly rows: number;
  /** Whether equal rows come in another order in each response. */
  readonly isShuffled: boolean;
}

/** As documented. */
export const DOCUMENTED_SIZE: PageSize = { rows: LIMITS.viewsPage.max, isShuffled: false };

export const PAGING: PlatformFact<PageSize> = {
  name: 'paging',
  value: z.object({ rows: z.int().min(1), isShuffled: z.boolean() }),
  isLimit: true,
};

export const readPageSize = (state: State, project: string, now: Date): PageSize =>
  readFact(state, project, PAGING, now) ?? DOCUMENTED_SIZE;

/** What is known while a day is read. */
export interface DayPageSize extends PageSize {
  /** The limits that this day showed, unless an offset may have been the reason. */
  readonly limits: readonly number[];
  /** How often a response that was not the last one had so many rows. */
  readonly shortPages: ReadonlyMap<number, number>;
}

export const pageSizeOfDay = (known: PageSize): DayPageSize => ({
  rows: known.rows,
  isShuffled: known.isShuffled,
  limits: [],
  shortPages: new Map(),
});

/** After the platform refused a larger limit than this one, for rows that begin at `offset`. */
export const limitedTo = (known: DayPageSize, rows: number, offset: number): DayPageSize => ({
  ...known,
  rows: Math.min(known.rows, rows),
  limits: offset === 0 ? [...known.limits, rows] : known.limits,
});

/** After a response that was not the last one. The same number of rows twice shows a silent limit. */
export function withPage(known: DayPageSize, rows: number): DayPageSize {
  if (rows >= known.rows) return known;
  const times = (known.shortPages.get(rows) ?? 0) + 1;
  const shortPages = new Map(known.shortPages).set(rows, times);
  const seen = { ...known, shortPages };
  return times > 1 && rows === Math.max(...shortPages.keys()) ? limitedTo(seen, rows, 0) : seen;
}

/** What the days of a load show. A day may be an exception, so a limit counts for others only once two days have shown it. */
export class ShownPageSize implements PageSize {
  readonly #limitedDays = new Map<number, Set<Day>>();
  #shown: PageSize;

  constructor(known: PageSize) {
    this.#shown = known;
  }

  get rows(): number {
    return this.#shown.rows;
  }

  get isShuffled(): boolean {
    return this.#shown.isShuffled;
  }

  add(day: Day, { limits, isShuffled }: DayPageSize): void {
    for (const limit of limits) {
      const days = (this.#limitedDays.get(limit) ?? new Set()).add(day);
      this.#limitedDays.set(limit, days);
    }
    const confirmed = [...this.#limitedDays].flatMap(([limit, days]) => (days.size > 1 ? limit : []));
    this.#shown = {
      rows: Math.min(this.rows, ...confirmed),
      isShuffled: this.isShuffled || isShuffled,
    };
  }
}

/** What a platform says of the end of its rows that cannot be right, and what exports do about it. */
export const DISAGREEMENT_WORDS = {
  'page totals':
    'returns the totals of each page instead of the whole day; exports read until there are no more rows, and stored days are not compared with them',
  'always more': 'says that there are more rows after the last one; exports end when the rows add up',
} as const;
export type Disagreement = keyof typeof DISAGREEMENT_WORDS;

export const DISAGREEMENT: PlatformFact<Disagreement> = {
  name: 'disagreement',
  value: z.enum(['page totals', 'always more']),
  isLimit: true,
};
