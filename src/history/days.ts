import { z } from 'zod';
import { type PageViews, type ViewCounts, viewCountsSchema } from '../api/schema.js';
import type { Day } from '../day.js';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import type { Columns, Reader } from './duckdb.js';
import type { ProjectPaths } from './path-ids.js';

const STORED_DAYS = readSql(import.meta.url, 'statements/stored-days.sql');
const COUNTS_OF_DAY = readSql(import.meta.url, 'statements/counts-of-day.sql');

/** The state of a stored day: see the table `days`. */
export const storedStateColumn = z.enum(['provisional', 'final', 'inconsistent']);
export type StoredState = z.infer<typeof storedStateColumn>;

const storedDay = viewCountsSchema.extend({
  day: dayColumn,
  state: storedStateColumn,
  first_loaded_at: timestampColumn,
  /** When its rows or its state last changed. */
  loaded_at: timestampColumn,
  /** When it was last read from the platform. */
  checked_at: timestampColumn,
  /** How many paths were viewed. */
  pages: z.int(),
  unattributed_human: z.int(),
  unattributed_ai: z.int(),
  unattributed_total: z.int(),
  /** Why it does not add up, or what the platform no longer has of it. */
  problem: z.string().nullable(),
  /** In how many nights in a row it did not add up. */
  nights_in_doubt: z.int(),
});
/** A stored day of a project. */
export type StoredDay = Readonly<z.infer<typeof storedDay>>;

/** The stored days of a project, by day, in any order. */
export type StoredDays = ReadonlyMap<Day, StoredDay>;

/** A change of a stored day that a later load found. */
export interface Restatement {
  readonly project: string;
  readonly day: Day;
  readonly at: Date;
  /** When the day was last read, or compared with the platform, before that. */
  readonly checkedBefore: Date;
  readonly before: ViewCounts;
  readonly after: ViewCounts;
  readonly pagesChanged: number;
}

export async function readStoredDays(reader: Reader, project: string): Promise<Map<Day, StoredDay>> {
  const rows = await reader.query(STORED_DAYS, storedDay, { project });
  return new Map(rows.map((row) => [row.day, row]));
}

/** The rows of a stored day. */
export async function readCountsOfDay(
  reader: Columns,
  project: string,
  day: Day,
): Promise<Omit<DayCounts, 'paths'>> {
  const [ids = [], human = [], ai = [], total = []] = await reader.columns(COUNTS_OF_DAY, { project, day });
  return {
    ids: Int32Array.from(ids, Number),
    human: Float64Array.from(human, Number),
    ai: Float64Array.from(ai, Number),
    total: Float64Array.from(total, Number),
  };
}

/** Whether any day of any project is stored. */
export const hasStoredDays = async (reader: Reader): Promise<boolean> =>
  (await reader.query('SELECT 1 FROM days LIMIT 1', z.object({}))).length > 0;

export const COUNTS = ['human', 'ai', 'total'] as const;

/** The rows of a day as numbers: the ids of paths, and their counts. */
export interface DayCounts {
  /** The paths that have the ids. */
  readonly paths: ProjectPaths;
  readonly ids: Int32Array;
  readonly human: Float64Array;
  readonly ai: Float64Array;
  readonly total: Float64Array;
}

/** A row of a day, with the id of its path. */
export interface CountedPath extends ViewCounts {
  readonly path: number;
}

export const rowsOfCounts = ({ ids, human, ai, total }: DayCounts): CountedPath[] =>
  Array.from(ids, (path, index) => ({
    path,
    human: human[index] ?? 0,
    ai: ai[index] ?? 0,
    total: total[index] ?? 0,
  }));

/** The same rows with the paths themselves. */
export function pageViewsOf(counts: DayCounts): PageViews[] {
  const paths = counts.paths.pathsOf(counts.ids);
  return rowsOfCounts(counts).map((row, index) => ({ ...row, path: paths[index] ?? '' }));
}

/** Throws a `RangeError` for a count that cannot be stored exactly. */
export function expectExact(counts: DayCounts): void {
  for (const name of COUNTS) {
    const wrong = counts[name].findIndex((count) => !Number.isSafeInteger(count) || count < 0);
    if (wrong !== -1) throw new RangeError(`${counts[name][wrong]} is no count of views (${name})`);
  }
}
