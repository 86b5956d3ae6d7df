import type { Client, ViewsQuery } from '../../src/api/client.js';
import type { PageViews, ViewCounts, ViewsResponse } from '../../src/api/schema.js';

/** Rows written `{ '/a': [human, ai] }`. */
export type Rows = Readonly<Record<string, readonly [human: number, ai: number]>>;

export const rowsOf = (rows: Rows): PageViews[] =>
  Object.entries(rows).map(([path, [human, ai]]) => ({ path, human, ai, total: human + ai }));

export const totalsOf = (rows: Rows): ViewCounts =>
  rowsOf(rows).reduce(
    (sum, { human, ai, total }) => ({
      human: sum.human + human,
      ai: sum.ai + ai,
      total: sum.total + total,
    }),
    { human: 0, ai: 0, total: 0 },
  );

/** A page of a walk; its totals are those of `totals`, or of all the rows of its walk. */
export interface Page {
  readonly rows: Rows;
  readonly totals?: ViewCounts;
}

/** Serves the walks of a script in order, repeating the last one; throws if a walk is longer than scripted. */
export function scriptedViews(walks: readonly (readonly Page[])[]) {
  let walk = -1;
  const queries: ViewsQuery[] = [];
  const client: Pick<Client, 'views'> = {
    views: (query): Promise<ViewsResponse> => {
      queries.push(query);
      if (query.offset === 0) walk = Math.min(walk + 1, walks.length - 1);
      const pages = walks[walk] ?? [];
      const at = query.offset / query.limit;
      const page = pages[at];
      if (page === undefined) throw new Error(`no page ${at} in walk ${walk}`);
      const all = pages.map(({ rows }) => totalsOf(rows));
      const sum = (key: keyof ViewCounts) => all.reduce((total, counts) => total + counts[key], 0);
      return Promise.resolve({
        totals: page.totals ?? { human: sum('human'), ai: sum('ai'), total: sum('total') },
        views: rowsOf(page.rows),
        hasMore: at < pages.length - 1,
      });
    },
  };
  return { client, queries, walksBegun: () => queries.filter(({ offset }) => offset === 0).length };
}
