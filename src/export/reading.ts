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
  readonly #paths = new Set<string>();
  /** Where the rows are, once a path has come again. */
  readonly #indexes = new Map<string, number>();

  /** Takes the rows of one page. Returns how many of its paths are new. */
  add(page: readonly PageViews[]): number {
    const start = this.rows.length;
    let { human, ai, total } = this.sum;
    for (const row of page) {
      const known =
        this.#paths.size === this.#paths.add(row.path).size ? this.#replace(row, start) : undefined;
      if (known === undefined) this.rows.push(row);
      human += row.human - (known?.human ?? 0);
      ai += row.ai - (known?.ai ?? 0);
      total += row.total - (known?.total ?? 0);
    }
    this.sum = { human, ai, total };
    return this.rows.length - start;
  }

  #replace(row: PageViews, start: number): PageViews | undefined {
    for (let index = this.#indexes.size; index < this.rows.length; index++)
      this.#indexes.set(this.rows[index]?.path ?? '', index);
    const index = this.#indexes.get(row.path) ?? -1;
    const known = this.rows[index];
    if (known === undefined) return undefined;
    this.rows[index] = row;
    this.replaced.push(known);
    this.hasRepeats ||= index < start && equalCounts(known, row);
    return known;
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
