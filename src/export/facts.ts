import { subDays } from 'date-fns';
import { z } from 'zod';
import { addDays, type Day, day, dayOf } from '../day.js';
import { type Reader, readSql, timestampColumn } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { DOCUMENTED_SIZE, type PageSize } from './page-size.js';

const FACT = readSql(import.meta.url, 'statements/fact.sql');
const RECORD_FACT = readSql(import.meta.url, 'statements/record-fact.sql');
const FORGET_FACT = 'DELETE FROM platform_facts WHERE project = $project AND fact = $fact';

/** How long a limit of the platform is believed: plans change. */
export const BELIEVED_DAYS = 30;

/** What a project can learn about its platform that is worth more than the requests that showed it. */
const fact = <Value>(name: string, value: z.ZodType<Value>) => ({ name, value, isLimit: false });
/** A limit, which is believed only for a time. */
const limit = <Value>(name: string, value: z.ZodType<Value>) => ({ name, value, isLimit: true });
type PlatformFact<Value> = ReturnType<typeof fact<Value>>;

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

const factRow = z.object({ value: z.string(), found_at: timestampColumn });

/** A fact about the platform; undefined if it is unknown, or a limit found too long before `now` or after it. */
export const readFact = async <Value>(
  ...asked: Parameters<typeof readLimit<Value>>
): Promise<Value | undefined> => (await readLimit(...asked))?.value;

/** As `readFact`, with the day from which a limit is not believed anymore, but found out again. */
export async function readLimit<Value>(
  reader: Reader,
  project: string,
  { name, value: schema, isLimit }: PlatformFact<Value>,
  now: Date,
): Promise<{ readonly value: Value; readonly until: Day } | undefined> {
  const values = { project, fact: name, is_limit: isLimit, since: subDays(now, BELIEVED_DAYS), now };
  const [row] = await reader.query(FACT, factRow, values);
  if (row === undefined) return undefined;
  return {
    value: schema.parse(JSON.parse(row.value)),
    until: addDays(dayOf(row.found_at), BELIEVED_DAYS + 1),
  };
}

/** Records a fact in place of what was known; undefined forgets it. */
export const recordFact = <Value>(
  warehouse: Warehouse,
  project: string,
  { name }: PlatformFact<Value>,
  value: Value | undefined,
  now: Date,
): Promise<void> =>
  warehouse.groupCommit(async (transaction) => {
    await transaction.execute(FORGET_FACT, { project, fact: name });
    if (value !== undefined)
      await transaction.execute(RECORD_FACT, { project, fact: name, value: JSON.stringify(value), now });
  });

export async function readPageSize(reader: Reader, project: string, now: Date): Promise<PageSize> {
  return (await readFact(reader, project, PAGING, now)) ?? DOCUMENTED_SIZE;
}
