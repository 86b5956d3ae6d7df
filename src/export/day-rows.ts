import type { PageViews, ViewCounts } from '../api/schema.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/** Collects the rows of a day as they arrive. Of a repeated path, the latest row counts. */
export class DayRows {
  sum: ViewCounts = NO_VIEWS;
  /** Rows that a later row of the same path replaced. */
  readonly replaced: PageViews[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  readonly #latest = new Map<string, PageViews>();

  constructor(rows: readonly PageViews[] = []) {
    this.add(rows);
  }

  get size(): number {
    return this.#latest.size;
  }

  /** One row for each path. */
  get rows(): PageViews[] {
    return [...this.#latest.values()];
  }

  /** Adds the rows of one page, some of which may be requested `again`. Returns whether it has any other or new ones. */
  add(page: readonly PageViews[], again: readonly PageViews[] = []): boolean {
    const expected = new Set(again.map(({ path }) => path));
    let { human, ai, total } = this.sum;
    let added = page.length;
    for (const row of page) {
      const known = this.#latest.get(row.path);
      if (known !== undefined) {
        const isSame = equalCounts(known, row);
        if (isSame && expected.delete(row.path)) continue;
        added--;
        this.replaced.push(known);
        this.hasRepeats ||= isSame && page.find(({ path }) => path === row.path) === row;
        human -= known.human;
        ai -= known.ai;
        total -= known.total;
      }
      this.#latest.set(row.path, row);
      human += row.human;
      ai += row.ai;
      total += row.total;
    }
    this.sum = { human, ai, total };
    return added > 0;
  }

  /** The rows with all counts of a path added up, if that accounts for `totals`. */
  merged(totals: ViewCounts): PageViews[] | undefined {
    const extra = new Map<string, ViewCounts>();
    let missing = subtractCounts(totals, this.sum);
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    return this.rows.map((row) => ({ path: row.path, ...addCounts(row, extra.get(row.path) ?? NO_VIEWS) }));
  }
}
