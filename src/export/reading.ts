import type { PageViews, ViewCounts } from '../api/schema.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/** The rows of a day as they arrive. A path that comes more than once keeps its latest counts. */
export class Reading {
  readonly rows: PageViews[] = [];
  /** Counts that a later row of the same path replaced. */
  readonly replaced: PageViews[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  sum: ViewCounts = NO_VIEWS;
  readonly #indexes = new Map<string, number>();

  /** Takes the rows of one page. Returns how many of its paths are new. */
  add(page: readonly PageViews[]): number {
    const start = this.rows.length;
    const sum = { ...this.sum };
    for (const row of page) {
      const index = this.#indexes.get(row.path);
      const known = index === undefined ? undefined : this.rows[index];
      if (index === undefined || known === undefined) {
        this.#indexes.set(row.path, this.rows.length);
        this.rows.push(row);
      } else {
        this.rows[index] = row;
        this.replaced.push(known);
        this.hasRepeats ||= index < start && equalCounts(known, row);
        sum.human -= known.human;
        sum.ai -= known.ai;
        sum.total -= known.total;
      }
      sum.human += row.human;
      sum.ai += row.ai;
      sum.total += row.total;
    }
    this.sum = sum;
    return this.rows.length - start;
  }

  /** The rows with all counts of a path added up, where that accounts for `totals`. */
  merged(totals: ViewCounts): PageViews[] | undefined {
    const extra = new Map<string, ViewCounts>();
    let missing = subtractCounts(totals, this.sum);
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    return this.rows.map((row) => ({ ...row, ...addCounts(row, extra.get(row.path) ?? NO_VIEWS) }));
  }
}
