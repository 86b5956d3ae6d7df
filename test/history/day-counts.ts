import type { PageViews } from '../../src/api/schema.js';
import type { DayCounts } from '../../src/history/days.js';
import { ProjectPaths } from '../../src/history/path-ids.js';

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
