import { subDays } from 'date-fns';
import { z } from 'zod';
import { type Day, day } from '../day.js';
import { type Reader, readSql } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { hasTable, PageSize } from './pages.js';

const FACT = readSql(import.meta.url, 'statements/fact.sql');
const RECORD_FACT = readSql(import.meta.url, 'statements/record-fact.sql');
const FORGET_FACT = 'DELETE FROM platform_facts WHERE project = $project AND fact = $fact';

/** How long a limit of the platform is believed: plans change. */
const BELIEVED_DAYS = 30;

/** What a project can learn about its platform that is worth more than the requests that showed it. */
interface Fact<Value> {
  readonly name: string;
  readonly value: z.ZodType<Value>;
  readonly isLimit?: boolean;
}

const dayValue = z.string().transform(day);
const searchValue = z.object({
  /** The last day of the ranges that it asks for, and the most days of a range. */
  last: dayValue,
  length: z.int(),
  /** There are views up to the day `known` days before the last, and none `beyond` days before. */
  known: z.int(),
  beyond: z.int(),
  /** Whether `beyond` is still unknown, or the range that ends there was refused. */
  isOpen: z.boolean(),
  isRefused: z.boolean(),
  /** Ages in days, and the views up to then, if ranges may have any length. */
  views: z.array(z.tuple([z.int(), z.int()])),
});
/** How far the search for the first day has got. */
export type Search = z.infer<typeof searchValue>;

const pagingValue = z.object({ rows: z.int().min(1), isShuffled: z.boolean() });
const PAGING: Fact<z.infer<typeof pagingValue>> = { name: 'paging', value: pagingValue, isLimit: true };
/** The first day that the platform does not refuse, although it answers for later ones. */
export const KEPT_FROM: Fact<Day> = { name: 'kept from', value: dayValue, isLimit: true };
export const SEARCH: Fact<Search> = { name: 'search', value: searchValue };
/** The last day that the rotation looked at. */
export const LOOKED_AT: Fact<Day> = { name: 'looked at', value: dayValue };
/** The first of two days whose sum was not that of their range. */
export const NOT_ADDITIVE: Fact<Day> = { name: 'not additive', value: dayValue };

/** A fact about the platform; undefined if it is unknown, or a limit found too long before `now` or after it. */
export async function readFact<Value>(
  reader: Reader,
  project: string,
  { name, value: schema, isLimit = false }: Fact<Value>,
  now: Date,
): Promise<Value | undefined> {
  // A history that an older version published has no such table.
  if (!(await hasTable(reader, 'platform_facts'))) return undefined;
  const values = { project, fact: name, is_limit: isLimit, since: subDays(now, BELIEVED_DAYS), now };
  const [row] = await reader.query(FACT, z.object({ value: z.string() }), values);
  return row === undefined ? undefined : schema.parse(JSON.parse(row.value));
}

/** Records a fact in place of what was known; undefined forgets it. */
export const recordFact = <Value>(
  warehouse: Warehouse,
  project: string,
  { name: fact }: Fact<Value>,
  value: Value | undefined,
  now: Date,
): Promise<void> =>
  warehouse.groupCommit(async (transaction) => {
    await transaction.execute(FORGET_FACT, { project, fact });
    if (value !== undefined)
      await transaction.execute(RECORD_FACT, { project, fact, value: JSON.stringify(value), now });
  });

export async function readPageSize(reader: Reader, project: string, now: Date): Promise<PageSize> {
  const known = await readFact(reader, project, PAGING, now);
  return new PageSize(known?.rows, known?.isShuffled);
}

export const recordPageSize = (
  warehouse: Warehouse,
  project: string,
  { rows, isShuffled }: PageSize,
  now: Date,
): Promise<void> => recordFact(warehouse, project, PAGING, { rows, isShuffled }, now);
