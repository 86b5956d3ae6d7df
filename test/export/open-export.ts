import pLimit from 'p-limit';
import { addDays, type Day, lastEndedDay } from '../../src/day.js';
import type { ExportOutcome, ExportTask } from '../../src/export/export.js';
import { type DayState, readDayLedger, readDay } from '../../src/export/ledger.js';
import { resolveRange } from '../../src/export/range.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import type { PageViews } from '../../src/api/schema.js';
import { openClient } from '../api/open-client.js';
import { budgetOn, type SleepingClock, sleepingClock } from '../budget/open-budget.js';
import { liveWarehouse } from '../open-warehouse.js';
import { exportHistory } from './export-history.js';
import { type Behaviors, type Platform, rowsOf, servePlatform } from '../platform.js';

export const PROJECT = 'prj_1';
export const SETTLE_DAYS = 3;

/** A site whose views a test can change: days without an entry are unchanged. */
export interface OpenExport {
  readonly clock: SleepingClock;
  readonly warehouse: Warehouse;
  readonly platform: Platform;
  readonly changed: Map<Day, readonly PageViews[]>;
  /** Views of days that are in none of their rows. */
  readonly hidden: Map<Day, number>;
  readonly yesterday: () => Day;
  readonly original: (day: Day) => PageViews[];
  /** The options of a load, to be spread into other calls. */
  readonly task: Omit<ExportTask, 'range'>;
  /** Exports what is due, starting where the platform's history starts unless `from` or another start is given. */
  readonly run: (
    from?: Day,
    options?: { start?: Day | 'auto'; spareRequests?: number },
  ) => Promise<ExportOutcome>;
  /** Requests that reached the platform while `work` was done. */
  readonly counting: <Result>(work: () => Promise<Result>) => Promise<{ result: Result; requests: number }>;
  readonly statesOf: (...days: Day[]) => Promise<(DayState | undefined)[]>;
  readonly storedRows: (day: Day) => Promise<readonly PageViews[] | undefined>;
}

export interface ExportOptions {
  /** Days with views, the last of them yesterday. */
  readonly days: number;
  readonly pages?: number;
  readonly concurrency?: number;
  readonly behaviors?: Behaviors;
  /** The hourly limit; none by default. */
  readonly hourly?: number;
}

/** A platform with a history, and an empty warehouse to export it into. */
export async function openExport({
  days,
  pages = 3,
  concurrency = 6,
  behaviors,
  hourly,
}: ExportOptions): Promise<OpenExport> {
  const clock = sleepingClock();
  const warehouse = await liveWarehouse();
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
  const budget =
    hourly === undefined ? undefined : budgetOn(warehouse, clock, { limit: hourly, maxWaitMs: 0 });
  const client = openClient(platform.baseUrl, {
    now: clock.now,
    limits: { responseTimeoutMs: 20_000 },
    ...(budget === undefined ? {} : { pace: budget }),
  });
  const common = { warehouse, client, project: PROJECT };
  const task = { ...common, settleDays: SETTLE_DAYS, inTurn: pLimit(concurrency), now: clock.now };
  return {
    clock,
    warehouse,
    platform,
    changed,
    hidden,
    original,
    task,
    yesterday: () => lastEndedDay(clock.now()),
    run: async (from, { start = 'auto' as const, spareRequests = 0 } = {}) => {
      const range = await resolveRange({ ...common, start, from, now: clock.now() });
      if (range === undefined) throw new Error('the platform has no views');
      return exportHistory({ ...task, range, spareRequests });
    },
    counting: async (work) => {
      const before = platform.views.length;
      const result = await work();
      return { result, requests: platform.views.length - before };
    },
    statesOf: async (...asked) => {
      const ledger = await readDayLedger(warehouse, PROJECT);
      return asked.map((day) => ledger.get(day)?.state);
    },
    storedRows: async (day) => (await readDay(warehouse, { project: PROJECT, day })).stored?.rows,
  };
}

/** The first page with so many more human views. */
export const withMore = (rows: readonly PageViews[], more: number): PageViews[] =>
  rows.map((row, index) =>
    index === 0 ? { ...row, human: row.human + more, total: row.total + more } : row,
  );

export const withOneMore = (rows: readonly PageViews[]): PageViews[] => withMore(rows, 1);
