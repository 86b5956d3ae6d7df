import { z } from 'zod';
import { type Day, day } from '../day.js';
import { type PlatformFact, readFact } from '../state/facts.js';
import type { State } from '../state/state.js';
import { DOCUMENTED_SIZE, type PageSize } from './page-size.js';

const fact = <Value>(name: string, value: z.ZodType<Value>): PlatformFact<Value> => ({
  name,
  value,
  isLimit: false,
});
const limit = <Value>(name: string, value: z.ZodType<Value>): PlatformFact<Value> => ({
  name,
  value,
  isLimit: true,
});

const dayValue = z.string().transform(day);
const searchValue = z.object({
  /** The last day of the ranges that it asks for, and the most days of a range. */
  last: dayValue,
  length: z.int(),
  /** Ages in days, and the views of the range that ends then; null if it was refused. */
  views: z.array(z.tuple([z.int(), z.int().nullable()])),
});
/** How far the search for the first day has got. */
export type Search = z.infer<typeof searchValue>;

export const PAGING = limit('paging', z.object({ rows: z.int().min(1), isShuffled: z.boolean() }));
/** The first day with a view. If it was not confirmed for a time, the days before it are checked again. */
export const FIRST_DAY = fact('first day', dayValue);
/** The first day that the platform does not refuse, although it answers for later ones. */
export const KEPT_FROM = limit('kept from', dayValue);
export const SEARCH = fact('search', searchValue);

export const readPageSize = (state: State, project: string, now: Date): PageSize =>
  readFact(state, project, PAGING, now) ?? DOCUMENTED_SIZE;

/** The first day to load, configured or found, of those that the platform keeps; undefined while it is unknown. */
export function readFirstDay(state: State, project: string, start: Day | 'auto', now: Date): Day | undefined {
  const first = start === 'auto' ? readFact(state, project, FIRST_DAY, now) : start;
  const keptFrom = readFact(state, project, KEPT_FROM, now);
  return first !== undefined && keptFrom !== undefined && keptFrom > first ? keptFrom : first;
}
