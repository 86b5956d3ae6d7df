import { z } from 'zod';
import type { Changes, NewPath } from './changes.js';
import type { History } from './history.js';
import { readSql } from '../columns.js';

const KNOWN_PROJECTS = readSql(import.meta.url, 'statements/known-projects.sql');
const KNOWN_PATHS = readSql(import.meta.url, 'statements/known-paths.sql');
const LAST_PATH = 'SELECT coalesce(max(path_id), 0) AS path_id FROM internal.paths';

const projectRow = z.object({ project_id: z.int(), project: z.string() });
const lastRow = z.object({ path_id: z.int() });

/** Projects and paths that the next version of the history has and the last one has not. */
type Added = Pick<Changes, 'projects' | 'newProjects' | 'newPaths'>;

/** The numbers of projects and paths: those in the history, and new ones. */
export class PathIds {
  readonly #projects = new Map<string, number>();
  #lastPath = 0;
  #begun: Promise<void> | undefined;
  readonly #paths = new Map<string, Promise<Map<string, number>>>();
  #newProjects: string[] = [];
  #newPaths: NewPath[] = [];

  constructor(
    private readonly reading: <Result>(work: (history: History) => Promise<Result>) => Promise<Result>,
  ) {}

  /** A function that answers the id of each path of a project. */
  async of(project: string): Promise<(path: string) => number> {
    await (this.#begun ??= this.#begin());
    const projectId = this.#projectId(project);
    const known = this.#paths.get(project) ?? this.#read(projectId);
    this.#paths.set(project, known);
    const ids = await known;
    return (path) => {
      const found = ids.get(path);
      if (found !== undefined) return found;
      const id = ++this.#lastPath;
      ids.set(path, id);
      this.#newPaths.push({ id, projectId, path });
      return id;
    };
  }

  /** The new ones, which the next version gets. */
  take(): Added {
    const added = { projects: this.#projects, newProjects: this.#newProjects, newPaths: this.#newPaths };
    this.#newProjects = [];
    this.#newPaths = [];
    return added;
  }

  /** That version was not written. */
  putBack({ newProjects, newPaths }: Added): void {
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

  /** Without a schema, because a site may have hundreds of thousands of paths. */
  #read(projectId: number): Promise<Map<string, number>> {
    return this.reading(async ({ connection }) => {
      const result = await connection.runAndReadAll(KNOWN_PATHS, { project_id: projectId });
      const [ids = [], paths = []] = result.getColumns();
      return new Map(paths.map((path, index) => [String(path).slice(1), Number(ids[index])]));
    });
  }
}
