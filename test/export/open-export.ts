import pLimit from 'p-limit';
import { addDays, type Day, lastEndedDay } from '../../src/day.js';
import { readDayRecords } from '../../src/export/day-records.js';
import { pageViewsOf } from '../../src/history/days.js';
import { resolveRange } from '../../src/export/range.js';
import type { PageViews } from '../../src/api/schema.js';
import { openClient } from '../api/open-client.js';
import { stateBeside } from '../open-state.js';
import { newStore } from '../open-history.js';
import { sleepingClock } from '../sleeping-clock.js';
import { type Behaviors, rowsOf, servePlatform } from '../platform.js';
import { exportInStages, type ExportOutcome, type ExportTask } from '../../src/export/export.js';

export const PROJECT = 'prj_1';
export const SETTLE_DAYS = 3;

export type OpenExport = Awaited<ReturnType<typeof openExport>>;

export interface ExportOptions {
  /** Days with views, the last of them yesterday. */
  readonly days: number;
  readonly pages?: number;
  readonly concurrency?: number;
  readonly behaviors?: Behaviors;
  readonly settleDays?: number;
}

/** A platform whose views a test can change, with a history, and an empty history to export it into. */
export async function openExport({
  days,
  pages = 3,
  concurrency = 6,
  behaviors,
  settleDays = SETTLE_DAYS,
}: ExportOptions) {
  const clock = sleepingClock();
  const history = await newStore();
  const { state } = await stateBeside(history);
  const changed = new Map<Day, readonly PageViews[]>();
  const hidden = new Map<Day, number>();
  const firstDay = addDays(lastEndedDay(clock.now()), 1 - days);
  const original = (day: Day) => (day < firstDay ? [] : rowsOf(day, pages));
  const served = new Map<Day, readonly PageViews[]>();
  const unchanged = (day: Day) => {
    const rows = served.get(day) ?? original(day);
    served.set(day, rows);
    return rows;
  };
  const platform = await servePlatform({
    now: clock.now,
    rowsOf: (day) => changed.get(day) ?? unchanged(day),
    hiddenOf: (day) => hidden.get(day) ?? 0,
    behaviors,
  });
  const client = openClient(platform.baseUrl, {
    now: clock.now,
    limits: { responseTimeoutMs: 20_000 },
  });
  const inTurn = pLimit(concurrency);
  const task = { history, state, client, project: PROJECT, settleDays, inTurn, now: clock.now };
  return {
    ...{ clock, history, state, platform, original },
    /** The rows of days that are not as they were. */
    changed,
    /** Views of days that are in none of their rows. */
    hidden,
    /** The options of a load, to be spread into other calls. */
    task,
    yesterday: (): Day => lastEndedDay(clock.now()),
    /** Exports what is due, starting where the platform's history starts unless `from` or another start is given. */
    run: async (from?: Day, how: { start?: Day | 'auto' } = {}) => {
      const { start = 'auto' } = how;
      const range = await resolveRange({ ...task, start, from });
      if (range === undefined) throw new Error('the platform has no views');
      return exportHistory({ ...task, range });
    },
    /** Requests that reached the platform while `work` was done. */
    counting: async <Result>(work: () => Promise<Result>) => {
      const before = platform.views.length;
      const result = await work();
      return { result, requests: platform.views.length - before };
    },
    statesOf: async (...asked: Day[]) => {
      const records = await readDayRecords({ history, state }, PROJECT);
      return asked.map((day) => records.get(day)?.state);
    },
    storedRows: async (day: Day) =>
      (await history.storedDays(PROJECT)).has(day)
        ? pageViewsOf(await history.countsOfDay(PROJECT, day))
        : undefined,
  };
}

/** The first page with so many more human views. */
export const withMore = (rows: readonly PageViews[], more: number): PageViews[] =>
  rows.map((row, index) =>
    index === 0 ? { ...row, human: row.human + more, total: row.total + more } : row,
  );

export const withOneMore = (rows: readonly PageViews[]): PageViews[] => withMore(rows, 1);

/** All stages at once, and what was read is written: the export of a single project. */
export async function exportHistory(task: ExportTask): Promise<ExportOutcome> {
  const stages = exportInStages(task);
  for (;;) {
    const { done, value } = await stages.next();
    if (done !== true) continue;
    await task.history.writeWaiting();
    return value;
  }
}
