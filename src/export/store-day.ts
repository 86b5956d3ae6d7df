import { max } from 'date-fns';
import { addDays, dayOf, type DayRange, startOfDay } from '../day.js';
import { type CountedPath, rowsOfCounts, type StoredDay, type StoredState } from '../history/days.js';
import type { HistoryStore } from '../history/store.js';
import { type DayOf, readLastVerification } from '../state/days.js';
import type { State } from '../state/state.js';
import { readDayRecords } from './day-records.js';
import { countChangedPages, equalCounts, NO_VIEWS, type StoredViews, type WalkedDay } from './totals.js';
import type { ViewCounts, ViewsResponse } from '../api/schema.js';

const FORGOTTEN = 'the platform no longer has all of it; the stored data is kept';
const FEWER =
  'the platform has fewer views of it than before; they are stored if it still has fewer the next night';

/** A day of a project, and the time of a record about it. */
interface DayAt extends DayOf {
  readonly now: Date;
}

/** What storing a day did: it added its first rows, found the same rows, or replaced them. */
export type StoreOutcome = 'added' | 'unchanged' | 'restated';

/** Why the stored rows of a day were kept, although the platform has fewer views: it deleted them, or may correct them. */
export type KeptOutcome = 'forgotten' | 'fewer';

/** The worker's history, and the state beside it. */
interface ExportStores {
  readonly history: HistoryStore;
  readonly state: State;
}

/**
 * Stores a walked day in place of whatever was stored for it, with a restatement when an earlier load had read other
 * numbers.
 */
export async function storeDay(
  { history, state }: ExportStores,
  { project, day, now }: DayAt,
  { totals, unattributed, counts, doubt }: WalkedDay,
  dayState: StoredState,
): Promise<StoreOutcome> {
  const known = (await history.storedDays(project)).get(day);
  const pages = counts.ids.length;
  const pagesChanged =
    known === undefined
      ? pages
      : countChangedPages(rowsOfCounts(await history.countsOfDay(project, day)), rowsOfCounts(counts));
  const isSame = known !== undefined && pagesChanged === 0 && equalCounts(known, totals);
  const stored: StoredDay = {
    day,
    state: dayState,
    first_loaded_at: known?.first_loaded_at ?? now,
    loaded_at: isSame && known.state === dayState ? known.loaded_at : now,
    checked_at: now,
    ...totals,
    pages,
    unattributed_human: unattributed.human,
    unattributed_ai: unattributed.ai,
    unattributed_total: unattributed.total,
    problem: doubt ?? null,
    nights_in_doubt: doubt === undefined ? 0 : nightsInDoubt(known, now),
  };
  if (isSame) {
    await history.put({ project, stored });
    return 'unchanged';
  }
  if (known === undefined) {
    await history.put({ project, stored, counts });
    return 'added';
  }
  const verifiedAt = readLastVerification(state, project, startOfDay(dayOf(now)));
  const checkedBefore = max([known.checked_at, ...(verifiedAt === undefined ? [] : [verifiedAt])]);
  const restatement = { project, day, at: now, checkedBefore, before: known, after: totals, pagesChanged };
  await history.put({ project, stored, counts, restatement });
  return 'restated';
}

/** Whether the platform already had fewer views of a day in an earlier night. */
export const wasSmaller = ({ problem, checked_at: checkedAt }: StoredDay, now: Date): boolean =>
  problem === FEWER && dayOf(checkedAt) !== dayOf(now);

/** Stores that a day was read again, and keeps its rows although the platform has fewer views. */
export async function keepDay(
  history: HistoryStore,
  { project, now }: DayAt,
  known: StoredDay,
  outcome: KeptOutcome,
): Promise<StoredState> {
  const isForgotten = outcome === 'forgotten';
  const state = isForgotten ? 'final' : 'inconsistent';
  const stored: StoredDay = {
    ...known,
    state,
    loaded_at: known.state === state ? known.loaded_at : now,
    checked_at: now,
    problem: isForgotten ? FORGOTTEN : FEWER,
    nights_in_doubt: isForgotten ? 0 : nightsInDoubt(known, now),
  };
  await history.put({ project, stored });
  return state;
}

/** In how many nights in a row, this one included, a day did not add up. */
const nightsInDoubt = (known: StoredDay | undefined, now: Date): number =>
  known?.state !== 'inconsistent'
    ? 1
    : known.nights_in_doubt + (dayOf(known.checked_at) === dayOf(now) ? 0 : 1);

/** Stores that a range of settled days has no views. Days that were requested before stay as they are. */
export async function storeEmptyDays(
  { history, state }: ExportStores,
  project: string,
  { first, last }: DayRange,
  now: Date,
): Promise<void> {
  const known = await readDayRecords({ history, state }, project);
  for (let day = first; day <= last; day = addDays(day, 1)) {
    if (known.has(day)) continue;
    const unattributed = { unattributed_human: 0, unattributed_ai: 0, unattributed_total: 0 };
    const times = { first_loaded_at: now, loaded_at: now, checked_at: now };
    const counts = { ...NO_VIEWS, pages: 0, ...unattributed };
    const stored: StoredDay = { day, state: 'final', ...times, ...counts, problem: null, nights_in_doubt: 0 };
    await history.put({ project, stored });
  }
}

/** Stores that a day was read again and is unchanged. Returns how many rows it has. */
export async function confirmDay(
  history: HistoryStore,
  { project, day, now }: DayAt,
  state: StoredState,
): Promise<number> {
  const known = (await history.storedDays(project)).get(day);
  if (known === undefined) throw new Error(`${day} of ${project} is not stored`);
  // As long as the state stays the same too, nobody needs the day again.
  const loadedAt = known.state === state ? known.loaded_at : now;
  const stored = { ...known, state, loaded_at: loadedAt, checked_at: now, problem: null, nights_in_doubt: 0 };
  await history.put({ project, stored });
  return known.pages;
}

/** The stored data of a day; undefined if there is none. */
export async function readStoredViews(
  history: HistoryStore,
  { project, day }: DayOf,
): Promise<StoredViews | undefined> {
  const totals = (await history.storedDays(project)).get(day);
  return totals && { totals, counts: await history.countsOfDay(project, day) };
}

/** Whether the platform's first page of a day, with its totals, is stored. The API promises no order, so any rows will do. */
export async function isAsStored(
  history: HistoryStore,
  { project, day }: DayOf,
  { totals, views, unreadable, hasMore }: ViewsResponse,
): Promise<boolean> {
  if (unreadable !== undefined && unreadable.length > 0) return false;
  const stored = (await history.storedDays(project)).get(day);
  if (stored === undefined || !equalCounts(stored, totals)) return false;
  if (views.length !== stored.pages && !(hasMore && views.length >= 1 && views.length < stored.pages))
    return false;
  const paths = await history.pathsOf(project);
  const rows = new Map(
    rowsOfCounts(await history.countsOfDay(project, day)).map((row) => [row.path, row] as const),
  );
  return views.every((row) => isSameRow(rows.get(paths.idOf(row.path)), row));
}

const isSameRow = (stored: CountedPath | undefined, row: ViewCounts): boolean =>
  stored !== undefined && equalCounts(stored, row);
