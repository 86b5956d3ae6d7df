import { DATE, DOUBLE, VARCHAR } from '@duckdb/node-api';
import duckdb from '@duckdb/node-bindings';
import { z } from 'zod';
import type { PageViews } from '../api/schema.js';
import { readSql } from '../columns.js';
import { dayOf, type DayRange } from '../day.js';
import { pageOf } from '../page.js';
import type { DayOf } from '../state/kept-pages.js';
import { dateOf } from '../warehouse/query.js';
import type { Transaction } from '../warehouse/transaction.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { readDay, type StoredDay, type StoredState } from './ledger.js';
import { countChangedPages, equalCounts, isForgotten } from './totals.js';
import type { WalkedDay } from './walk.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const RECORD_RESTATEMENT = statement('record-restatement');
const RECORD_FORGOTTEN = statement('record-forgotten');
const RECORD_UNCHANGED = statement('record-unchanged');
const RECORD_EMPTY_DAYS = statement('record-empty-days');
const DELETE_PAGES = 'DELETE FROM page_views WHERE project = $project AND day = $day::DATE';
const DELETE_LOAD = 'DELETE FROM day_loads WHERE project = $project AND day = $day::DATE';

const FORGOTTEN = 'the platform no longer has it; the stored data is kept';

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
    const known = isMissing ? undefined : await readDay(transaction, at);
    const stored = known?.views;
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
    const failures = doubt === undefined ? 0 : nightsInDoubt(known?.record, at.now);
    await appendLoad(transaction, at, walked, state, failures);
    if (isSame) return 'unchanged';
    return stored === undefined ? 'added' : 'restated';
  });

/** In how many nights in a row, this one included, a day did not add up. */
const nightsInDoubt = (known: StoredDay | undefined, now: Date): number =>
  known?.state !== 'inconsistent' ? 1 : known.failures + (dayOf(known.attempted_at) === dayOf(now) ? 0 : 1);

/** Stores that a range of settled days has no views. Stored days stay as they are. */
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
  state: StoredState,
  failures: number,
): Promise<void> {
  const counts = [totals.human, totals.ai, totals.total, rows.length];
  const missing = [unattributed.human, unattributed.ai, unattributed.total];
  const day = [at.project, dateOf(at.day), state, at.now, at.now];
  return transaction.appendRow('day_loads', [...day, ...counts, ...missing, doubt ?? null, failures]);
}
