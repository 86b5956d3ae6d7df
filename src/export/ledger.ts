import { DATE, DOUBLE, VARCHAR } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { z } from 'zod';
import { type PageViews, viewCountsSchema, type ViewsResponse } from '../api/schema.js';
import { addDays, type Day, dayOf, type DayRange } from '../day.js';
import { pageOf } from '../page.js';
import {
  dateOf,
  dayColumn,
  dayStateColumn,
  type Reader,
  readSql,
  timestampColumn,
} from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { countChangedPages, equalCounts, isForgotten } from './totals.js';
import type { DayOf } from '../state/kept-pages.js';
import type { StoredViews, WalkedDay } from './walk.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const RECORD_FAILURE = statement('record-failure');
const RECORD_RESTATEMENT = statement('record-restatement');
const RECORD_FORGOTTEN = statement('record-forgotten');
const RECORD_UNCHANGED = statement('record-unchanged');
const RECORD_EMPTY_DAYS = statement('record-empty-days');
const DAY_LEDGER = statement('day-ledger');
const STORED_PAGES = statement('stored-pages');
const AS_STORED = statement('as-stored');
const DELETE_PAGES = 'DELETE FROM page_views WHERE project = $project AND day = $day::DATE';
const DELETE_LOAD = 'DELETE FROM day_loads WHERE project = $project AND day = $day::DATE';

const FORGOTTEN = 'the platform no longer has it; the stored data is kept';

export type DayState = z.infer<typeof dayStateColumn>;
/** The state of a day that was read. */
export type StoredState = Exclude<DayState, 'failed'>;

const dayRecord = viewCountsSchema.extend({
  day: dayColumn,
  state: dayStateColumn,
  is_stored: z.boolean(),
  attempted_at: timestampColumn,
  pages: z.int().nullable(),
  /** Attempts in a row that failed, or nights in a row in which it did not add up. */
  failures: z.int(),
  /** Why the last one failed or did not add up. */
  failure: z.string().nullable(),
});
/** A day in the ledger. */
export type DayRecord = z.infer<typeof dayRecord>;
export type DayLedger = ReadonlyMap<Day, DayRecord>;

const ledgerRow = dayRecord.extend({ days: z.int() });

/**
 * Every day of a project that was ever requested, oldest first. With `since`, most final days before it have the record of
 * an earlier one: only their state is right, and whether they have views.
 */
export async function readDayLedger(reader: Reader, project: string, since: Day | null = null) {
  const rows = await reader.query(DAY_LEDGER, ledgerRow, { project, since, day: null });
  const ledger = new Map<Day, DayRecord>();
  for (const row of rows)
    for (let later = 0; later < row.days; later++) ledger.set(addDays(row.day, later), row);
  return ledger;
}

/** Whether any day of any project is stored. */
export const hasStoredDays = async (reader: Reader): Promise<boolean> =>
  (await reader.query('SELECT 1 FROM day_loads WHERE loaded_at IS NOT NULL LIMIT 1', z.object({}))).length >
  0;

const pageRow = viewCountsSchema.extend({ path: z.string().transform((path) => path.slice(1)) });

/** What is known about a day, and its stored data; undefined if there is none. */
export async function readDay(
  reader: Reader,
  { project, day }: DayOf,
): Promise<{ known?: DayRecord | undefined; stored?: StoredViews }> {
  const [known] = await reader.query(DAY_LEDGER, dayRecord, { project, day, since: null });
  if (known?.is_stored !== true) return { known };
  return {
    known,
    stored: { totals: known, rows: await reader.query(STORED_PAGES, pageRow, { project, day }) },
  };
}

/** Whether the platform's first page of a day, with its totals, is stored. The API promises no order, so any rows will do. */
export async function isAsStored(reader: Reader, at: DayOf, first: ViewsResponse): Promise<boolean> {
  const values = { ...at, ...first.totals, rows: JSON.stringify(first.views), has_more: first.hasMore };
  return (await reader.query(AS_STORED, z.object({ day: dayColumn }), values)).length > 0;
}

/** A day of a project, and the time of a record about it. */
interface DayAt extends DayOf {
  readonly now: Date;
}

/**
 * What storing a day did: it added its first rows, found the same rows, replaced them, or kept them
 * because the platform no longer has any.
 */
export type StoreOutcome = 'added' | 'unchanged' | 'restated' | 'forgotten';

/**
 * Stores a walked day in place of whatever was stored for it, in one transaction with its ledger
 * row, and with a restatement when an earlier load had read other numbers. A settled day is never
 * replaced with nothing, even if the platform no longer has it. A day that is `missing` in the
 * ledger has nothing to compare or remove.
 */
export const storeDay = (
  warehouse: Warehouse,
  at: DayAt,
  walked: WalkedDay,
  state: StoredState,
  isMissing = false,
): Promise<StoreOutcome> =>
  warehouse.groupCommit(async (transaction) => {
    const { totals, rows, doubt } = walked;
    const { known, stored } = isMissing ? {} : await readDay(transaction, at);
    if (stored !== undefined && state !== 'provisional' && isForgotten(stored.totals, totals)) {
      await transaction.execute(RECORD_FORGOTTEN, { ...at, failure: FORGOTTEN });
      return 'forgotten';
    }
    const pages_changed = stored && countChangedPages(stored.rows, rows);
    const isSame = stored !== undefined && pages_changed === 0 && equalCounts(stored.totals, totals);
    if (pages_changed !== undefined && !isSame)
      await transaction.execute(RECORD_RESTATEMENT, { ...at, ...totals, pages_changed });
    if (known !== undefined && !isSame) await transaction.execute(DELETE_PAGES, { ...at });
    if (known !== undefined) await transaction.execute(DELETE_LOAD, { ...at });
    if (!isSame) await appendPages(transaction, at, rows);
    const failures = doubt === undefined ? 0 : nightsInDoubt(known, at.now);
    await appendLoad(transaction, at, walked, state, failures);
    if (isSame) return 'unchanged';
    return stored === undefined ? 'added' : 'restated';
  });

/** In how many nights in a row, this one included, a day did not add up. */
const nightsInDoubt = (known: DayRecord | undefined, now: Date): number =>
  known?.state !== 'inconsistent' ? 1 : known.failures + (dayOf(known.attempted_at) === dayOf(now) ? 0 : 1);

/** Stores that a range of settled days has no views. Days that were requested before stay as they are. */
export const storeEmptyDays = (
  warehouse: Warehouse,
  project: string,
  range: DayRange,
  now: Date,
): Promise<void> =>
  warehouse.groupCommit((transaction) => transaction.execute(RECORD_EMPTY_DAYS, { project, now, ...range }));

/** Records that a day was read again and is unchanged. Returns how many rows it has. */
export const confirmDay = (warehouse: Warehouse, at: DayAt, state: StoredState): Promise<number> =>
  warehouse.groupCommit(async (transaction) => {
    const [row] = await transaction.query(RECORD_UNCHANGED, z.object({ pages: z.int() }), { ...at, state });
    return row?.pages ?? 0;
  });

/** Records that a day could not be loaded. Rows stored by an earlier load stay. */
export const recordFailedDay = (warehouse: Warehouse, at: DayAt, failure: string): Promise<void> =>
  warehouse.groupCommit((transaction) => transaction.execute(RECORD_FAILURE, { ...at, failure }));

function appendPages(
  transaction: Transaction,
  { project, day }: DayAt,
  rows: readonly PageViews[],
): Promise<void> {
  return transaction.append('page_views', rows.length, [
    { type: VARCHAR, same: duckdb.create_varchar(project) },
    { type: DATE, same: duckdb.create_date(dateOf(day)) },
    { type: VARCHAR, values: rows.map(({ path }) => path) },
    { type: VARCHAR, values: rows.map(({ path }) => pageOf(path)) },
    { type: DOUBLE, values: rows.map(({ human }) => human) },
    { type: DOUBLE, values: rows.map(({ ai }) => ai) },
    { type: DOUBLE, values: rows.map(({ total }) => total) },
  ]);
}

function appendLoad(
  transaction: Transaction,
  at: DayAt,
  { totals, unattributed, rows, doubt }: WalkedDay,
  state: DayState,
  failures: number,
): Promise<void> {
  const counts = [totals.human, totals.ai, totals.total, rows.length];
  const missing = [unattributed.human, unattributed.ai, unattributed.total];
  const day = [at.project, dateOf(at.day), state, at.now, at.now];
  return transaction.appendRow('day_loads', [...day, ...counts, ...missing, doubt ?? null, failures]);
}
