import { z } from 'zod';
import { type PageViews, type ViewCounts, viewCountsSchema } from '../api/schema.js';
import type { Day } from '../day.js';
import { dayColumn, readSql, timestampColumn } from '../columns.js';
import type { Columns, Reader } from './duckdb.js';

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

const KNOWN_PROJECTS = readSql(import.meta.url, 'statements/known-projects.sql');
const KNOWN_PATHS = readSql(import.meta.url, 'statements/known-paths.sql');
const LAST_PATH = 'SELECT coalesce(max(path_id), 0) AS path_id FROM internal.paths';

const projectRow = z.object({ project_id: z.int(), project: z.string() });
const lastRow = z.object({ path_id: z.int() });

/** A path that the history does not have yet. */
interface NewPath {
  readonly id: number;
  readonly projectId: number;
  readonly path: string;
}

/** The ids of all projects, and the projects and paths that the next version of the history has and the last one has not. */
export interface NewIds {
  readonly projects: ReadonlyMap<string, number>;
  readonly newProjects: readonly string[];
  readonly newPaths: readonly NewPath[];
}

/** The paths of a project and their ids: those in the history, and those that have got an id since. */
export class ProjectPaths {
  constructor(
    private readonly ids: Map<string, number>,
    private readonly newId: (path: string) => number,
  ) {}

  idOf(path: string): number {
    const known = this.ids.get(path);
    if (known !== undefined) return known;
    const id = this.newId(path);
    this.ids.set(path, id);
    return id;
  }

  /** The paths of ids, in their order. It looks through all paths. */
  pathsOf(ids: Iterable<number>): string[] {
    const paths = new Map(Array.from(this.ids, ([path, id]) => [id, path]));
    return Array.from(ids, (id) => {
      const path = paths.get(id);
      if (path === undefined) throw new RangeError(`no path has the id ${id}`);
      return path;
    });
  }
}

/** The ids of projects and paths: those in the history, and new ones. */
export class PathIds {
  readonly #projects = new Map<string, number>();
  #lastPath = 0;
  #begun: Promise<void> | undefined;
  readonly #paths = new Map<string, Promise<ProjectPaths>>();
  #newProjects: string[] = [];
  #newPaths: NewPath[] = [];

  constructor(
    private readonly reading: <Result>(
      work: (history: Reader & Columns) => Promise<Result>,
    ) => Promise<Result>,
  ) {}

  async of(project: string): Promise<ProjectPaths> {
    await (this.#begun ??= this.#begin());
    const projectId = this.#projectId(project);
    const known = this.#paths.get(project) ?? this.#read(projectId);
    this.#paths.set(project, known);
    return known;
  }

  /** The new ones among the ids of the rows of days, which the next version gets with them. */
  take(ofDays: Iterable<Int32Array>): NewIds {
    const used = new Uint8Array(this.#lastPath + 1);
    for (const ids of ofDays) for (const id of ids) used[id] = 1;
    const newPaths = this.#newPaths.filter(({ id }) => used[id] === 1);
    this.#newPaths = this.#newPaths.filter(({ id }) => used[id] !== 1);
    const newProjects = this.#newProjects;
    this.#newProjects = [];
    return { projects: this.#projects, newProjects, newPaths };
  }

  /** That version was not written. */
  putBack({ newProjects, newPaths }: NewIds): void {
    this.#newProjects = [...newProjects, ...this.#newProjects];
    this.#newPaths = [...newPaths, ...this.#newPaths];
  }

  #projectId(project: string): number {
    const known = this.#projects.get(project);
    if (known !== undefined) return known;
    const id = Math.max(0, ...this.#projects.values()) + 1;
    this.#projects.set(project, id);
    this.#newProjects.push(project);
    return id;
  }

  #begin(): Promise<void> {
    return this.reading(async (history) => {
      for (const row of await history.query(KNOWN_PROJECTS, projectRow))
        this.#projects.set(row.project, row.project_id);
      this.#lastPath = (await history.query(LAST_PATH, lastRow))[0]?.path_id ?? 0;
    });
  }

  async #read(projectId: number): Promise<ProjectPaths> {
    const [ids = [], paths = []] = await this.reading((history) =>
      history.columns(KNOWN_PATHS, { project_id: projectId }),
    );
    const known = new Map(paths.map((path, index) => [String(path).slice(1), Number(ids[index])]));
    return new ProjectPaths(known, (path) => {
      const id = ++this.#lastPath;
      this.#newPaths.push({ id, projectId, path });
      return id;
    });
  }
}
