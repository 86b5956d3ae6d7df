import { z } from 'zod';
import type { Columns, Reader } from './duckdb.js';
import { readSql } from '../columns.js';

const KNOWN_PROJECTS = readSql(import.meta.url, 'statements/known-projects.sql');
const KNOWN_PATHS = readSql(import.meta.url, 'statements/known-paths.sql');
const LAST_PATH = 'SELECT coalesce(max(path_id), 0) AS path_id FROM internal.paths';

const projectRow = z.object({ project_id: z.int(), project: z.string() });
const lastRow = z.object({ path_id: z.int() });

/** A path that the history does not have yet. */
export interface NewPath {
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
