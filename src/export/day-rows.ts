import type { PageViews, ViewCounts } from '../api/schema.js';
import { pageOf } from '../page.js';
import { Texts } from '../warehouse/texts.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/** Numbered paths, and their pages, which are numbered with them. */
export class Paths extends Texts {
  /** By the number of a path. */
  readonly #pages: number[] = [];

  /** The numbers of the pages of some paths. */
  pagesOf(paths: Int32Array): Int32Array {
    return paths.map((path) => (this.#pages[path] ??= this.numberOf(pageOf(this.textOf(path)))));
  }
}

/** Rows of page views in columns: as objects, they would make an export a fifth slower. */
export class Rows implements Iterable<PageViews> {
  /** The numbers of the paths. */
  readonly numbers: number[] = [];
  readonly human: number[] = [];
  readonly ai: number[] = [];
  readonly total: number[] = [];

  constructor(
    rows: Iterable<PageViews> = [],
    readonly paths = new Paths(),
  ) {
    for (const row of rows) this.push(row);
  }

  get length(): number {
    return this.numbers.length;
  }

  *[Symbol.iterator](): Generator<PageViews, void, void> {
    for (let index = 0; index < this.length; index++) yield this.row(index);
  }

  row(index: number): PageViews {
    return {
      path: this.paths.textOf(this.numbers[index] ?? 0),
      human: this.human[index] ?? 0,
      ai: this.ai[index] ?? 0,
      total: this.total[index] ?? 0,
    };
  }

  /** Returns the number of its path. */
  push(row: PageViews): number {
    const number = this.paths.numberOf(row.path);
    this.numbers.push(number);
    this.human.push(row.human);
    this.ai.push(row.ai);
    this.total.push(row.total);
    return number;
  }
}

/**
 * Collects the rows of a day as they arrive. Of a repeated path, the latest row counts. Days have most
 * of their paths in common, so they share `paths`.
 */
export class DayRows {
  /** The number of paths. */
  size = 0;
  sum: ViewCounts = NO_VIEWS;
  /** The totals of the site, as on the last page. */
  totals: ViewCounts = NO_VIEWS;
  /** Whether all pages had the same totals. */
  isSteady = true;
  /** Rows that a later row of the same path replaced. */
  readonly replaced: PageViews[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  readonly #arrived: Rows;
  /** Which of them were requested again, by index. */
  readonly #again = new Set<number>();
  /** By the number of a path, one more than the index of its latest row; 0 or nothing if it has none. */
  readonly #places: number[];

  constructor(private readonly paths = new Paths()) {
    this.#arrived = new Rows([], paths);
    this.#places = Array<number>(paths.size).fill(0);
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
    return [...this.#arrived].filter((_, index) => !this.#again.has(index));
  }

  /** One row for each path. */
  get rows(): Rows {
    const all = this.#arrived;
    if (this.size === all.length) return all;
    const latest = [...all].filter((_, index) => this.#places[all.numbers[index] ?? 0] === index + 1);
    return new Rows(latest, this.paths);
  }

  /** Adds the rows of one page, some of which may be requested `again`. */
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
      const number = rows.push(row);
      const place = this.#places[number] ?? 0;
      this.#places[number] = rows.length;
      if (place === 0) {
        this.size++;
        continue;
      }
      const known = rows.row(place - 1);
      human -= known.human;
      ai -= known.ai;
      total -= known.total;
      const isSame = equalCounts(known, row);
      if (isSame && expected.delete(row.path)) continue;
      this.replaced.push(known);
      this.hasRepeats ||= isSame && place <= start;
    }
    this.sum = { human, ai, total };
  }

  /** The rows with all counts of a path added up, if that accounts for the totals. */
  merged(): Rows | undefined {
    const extra = new Map<string, ViewCounts>();
    let missing = this.unattributed;
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    const merged = Array.from(this.rows, (row) => ({
      path: row.path,
      ...addCounts(row, extra.get(row.path) ?? NO_VIEWS),
    }));
    return new Rows(merged, this.paths);
  }
}
