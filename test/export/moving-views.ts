import type { Client, ViewsQuery } from '../../src/api/client.js';
import type { PageViews, ViewCounts } from '../../src/api/schema.js';
import { sumCounts } from '../../src/export/totals.js';

/** The platform's data of a day at the time of one request; its totals are the sum of its rows unless given. */
export interface Moment {
  readonly rows: readonly PageViews[];
  readonly totals?: ViewCounts;
}

/** Serves a day that changes from request to request: each one sees the next moment, and all others the last. */
export function movingViews(moments: readonly (Moment | readonly PageViews[])[]) {
  const queries: ViewsQuery[] = [];
  const client: Pick<Client, 'views'> = {
    views: (query) => {
      const moment = moments[Math.min(queries.length, moments.length - 1)] ?? [];
      queries.push(query);
      const { rows, totals = sumCounts(rows) } = 'rows' in moment ? moment : { rows: moment };
      const end = query.offset + query.limit;
      return Promise.resolve({ totals, views: rows.slice(query.offset, end), hasMore: end < rows.length });
    },
  };
  return { client, queries, walksBegun: () => queries.filter(({ offset }) => offset === 0).length };
}

export const row = (path: string, human: number, ai = 0) => ({ path, human, ai, total: human + ai });

/** Rows written `{ '/a': [human, ai] }`. */
export type Rows = Readonly<Record<string, readonly [human: number, ai: number]>>;

export const rowsOf = (rows: Rows): PageViews[] =>
  Object.entries(rows).map(([path, [human, ai]]) => row(path, human, ai));

export const totalsOf = (rows: Rows): ViewCounts => sumCounts(rowsOf(rows));

/** Rows in falling order, no two with the same counts. */
export const rowsInOrder = (count: number): PageViews[] =>
  Array.from({ length: count }, (_, index) => row(`/page-${index}`, 3 * (count - index), index % 3));

/** The same rows, with the one at `from` moved to `to`. */
export function withMoved(rows: readonly PageViews[], from: number, to: number): PageViews[] {
  const moved = rows[from];
  return moved === undefined ? [...rows] : rows.toSpliced(from, 1).toSpliced(to, 0, moved);
}

export const byPath = (rows: readonly PageViews[]): PageViews[] =>
  rows.toSorted((left, right) => (left.path < right.path ? -1 : 1));
