import type { PageViews } from '../../src/api/schema.js';
import { day as toDay } from '../../src/day.js';
import { storeDay } from '../../src/export/store-day.js';
import { NO_VIEWS, sumCounts } from '../../src/export/totals.js';
import { stateBeside } from '../open-state.js';
import type { HistoryStore } from '../../src/history/store.js';
import { type DayCounts, ProjectPaths } from '../../src/history/days.js';

export { row as page } from '../export/moving-views.js';

const NOW = new Date('2026-11-18T05:00:00Z');

/** Stores days as an export does: each replaces what was stored for it. */
export async function store(
  history: HistoryStore,
  project: string,
  days: Readonly<Record<string, readonly PageViews[]>>,
): Promise<void> {
  for (const [at, rows] of Object.entries(days))
    await storeLoaded(history, { project, day: toDay(at), now: NOW }, rows, 'final');
}

type StoredDay = Parameters<typeof storeDay>;

/** Stores a day whose rows add up. */
export async function storeLoaded(
  history: HistoryStore,
  on: StoredDay[1],
  rows: readonly PageViews[],
  state: StoredDay[3],
): ReturnType<typeof storeDay> {
  const counts = countsOf(rows, await history.pathsOf(on.project));
  const walked = { totals: sumCounts(rows), counts, doubt: undefined, unattributed: NO_VIEWS };
  const { state: ofHistory } = await stateBeside(history);
  return storeDay({ history, state: ofHistory }, on, walked, state);
}

/** The paths of a project that has none yet. */
export function noPaths(): ProjectPaths {
  let last = 0;
  return new ProjectPaths(new Map(), () => ++last);
}

/** Rows as numbers. */
export const countsOf = (rows: readonly PageViews[], paths = noPaths()): DayCounts => ({
  paths,
  ids: Int32Array.from(rows, ({ path }) => paths.idOf(path)),
  human: Float64Array.from(rows, ({ human }) => human),
  ai: Float64Array.from(rows, ({ ai }) => ai),
  total: Float64Array.from(rows, ({ total }) => total),
});
