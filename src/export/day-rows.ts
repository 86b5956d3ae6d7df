import { PagingError } from '../api/errors.js';
import { type PageViews, TOO_MANY_VIEWS, type ViewCounts } from '../api/schema.js';
import { thousands } from '../format/numbers.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/**
 * Collects the rows of a day as they arrive. Of a repeated path, the latest row counts.
 */
export class DayRows {
  sum: ViewCounts = NO_VIEWS;
  /** The totals of the site, as on the last page. */
  totals: ViewCounts = NO_VIEWS;
  /** Whether all pages had the same totals. */
  isSteady = true;
  /** Rows that a later row of the same path replaced. */
  readonly replaced: PageViews[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  readonly #arrived: PageViews[] = [];
  /** Which of them were requested again, by index. */
  readonly #again = new Set<number>();
  /** The index of the latest row of each path. */
  readonly #places = new Map<string, number>();

  /** The number of paths. */
  get size(): number {
    return this.#places.size;
  }

  /** The totals minus the sum of the rows. */
  get unattributed(): ViewCounts {
    return subtractCounts(this.totals, this.sum);
  }

  get addsUp(): boolean {
    return equalCounts(this.sum, this.totals);
  }

  /** The rows in their places on the platform. */
  get places(): PageViews[] {
    return this.#arrived.filter((_, index) => !this.#again.has(index));
  }

  /** One row for each path. */
  get rows(): readonly PageViews[] {
    const all = this.#arrived;
    if (this.size === all.length) return all;
    return all.filter(({ path }, index) => this.#places.get(path) === index);
  }

  /** Adds the rows of one page, some of which may be requested `again`. Throws a `PagingError` for impossible counts. */
  add(totals: ViewCounts, page: readonly PageViews[], again: readonly PageViews[] = []): void {
    this.isSteady &&= this.size === 0 || equalCounts(this.totals, totals);
    this.totals = totals;
    const expected = new Set(again.map(({ path }) => path));
    const rows = this.#arrived;
    const start = rows.length;
    again.forEach((_, index) => this.#again.add(start + index));
    let { human, ai, total } = this.sum;
    for (const row of page) {
      human += row.human;
      ai += row.ai;
      total += row.total;
      const place = this.#places.get(row.path);
      const known = place === undefined ? undefined : rows[place];
      this.#places.set(row.path, rows.push(row) - 1);
      if (place === undefined || known === undefined) continue;
      human -= known.human;
      ai -= known.ai;
      total -= known.total;
      const isSame = equalCounts(known, row);
      if (isSame && expected.delete(row.path)) continue;
      this.replaced.push(known);
      this.hasRepeats ||= isSame && place < start;
    }
    this.sum = { human, ai, total };
    const most = Math.max(human, ai, total, totals.human, totals.ai, totals.total);
    if (most >= TOO_MANY_VIEWS)
      throw new PagingError(`the platform reports ${thousands(most)} views, which cannot be right`);
  }

  /** The rows with all counts of a path added up, if that accounts for the totals. */
  merged(): PageViews[] | undefined {
    const extra = new Map<string, ViewCounts>();
    let missing = this.unattributed;
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    return this.rows.map((row) => ({
      path: row.path,
      ...addCounts(row, extra.get(row.path) ?? NO_VIEWS),
    }));
  }
}
