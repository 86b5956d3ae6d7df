import type { PageViews, ViewCounts } from '../api/schema.js';
import type { ProjectPaths } from './path-ids.js';

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
