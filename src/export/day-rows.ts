import type { PageViews, ViewCounts } from '../api/schema.js';
import { grown, Texts } from '../warehouse/texts.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/** Rows of page views in columns, which take less memory and time than objects. */
export class Rows implements Iterable<PageViews> {
  constructor(
    readonly paths: Texts,
    /** The numbers of the paths. */
    readonly numbers: Int32Array,
    readonly human: Float64Array,
    readonly ai: Float64Array,
    readonly total: Float64Array,
  ) {}

  static of(rows: readonly PageViews[], paths = new Texts()): Rows {
    return new Rows(
      paths,
      Int32Array.from(rows, ({ path }) => paths.numberOf(path)),
      Float64Array.from(rows, ({ human }) => human),
      Float64Array.from(rows, ({ ai }) => ai),
      Float64Array.from(rows, ({ total }) => total),
    );
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

  slice(from: number, to: number): Rows {
    return new Rows(
      this.paths,
      this.numbers.subarray(from, to),
      this.human.subarray(from, to),
      this.ai.subarray(from, to),
      this.total.subarray(from, to),
    );
  }

  /** The same rows, with room for `size` in all. */
  withRoom(size: number): Rows {
    return new Rows(
      this.paths,
      grown(this.numbers, new Int32Array(size)),
      grown(this.human, new Float64Array(size)),
      grown(this.ai, new Float64Array(size)),
      grown(this.total, new Float64Array(size)),
    );
  }
}

/**
 * Collects the rows of a day as they arrive. Of a repeated path, the latest row counts. Days have
 * most of their paths in common, so they share `paths`.
 */
export class DayRows {
  /** Number of rows that arrived. */
  arrived = 0;
  sum: ViewCounts = NO_VIEWS;
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  /** The rows that arrived, and room for more. */
  #rows: Rows;
  /** Indices of rows that a later row of the same path replaced. */
  readonly #replaced = new Set<number>();
  /** By the number of a path, one more than the index of its latest row; 0 for none. */
  #places = new Int32Array();

  constructor(private readonly paths = new Texts()) {
    this.#rows = Rows.of([], paths);
  }

  /** One row for each path. */
  get rows(): Rows {
    const all = this.slice(0, this.arrived);
    if (this.#replaced.size === 0) return all;
    return Rows.of(
      [...all].filter((_, index) => !this.#replaced.has(index)),
      this.paths,
    );
  }

  /** Rows that a later row of the same path replaced. */
  get replaced(): PageViews[] {
    return [...this.#replaced].map((index) => this.#rows.row(index));
  }

  /** Rows as they arrived, by their indices in the order of arrival. */
  slice(from: number, to: number): Rows {
    return this.#rows.slice(from, to);
  }

  /** Adds the rows of one page. Returns how many of its paths are new. */
  add(page: readonly PageViews[]): number {
    const start = this.arrived;
    const replacedBefore = this.#replaced.size;
    const size = start + page.length;
    if (size > this.#rows.length) this.#rows = this.#rows.withRoom(Math.max(size, 2 * this.#rows.length));
    const rows = this.#rows;
    let { human, ai, total } = this.sum;
    for (const row of page) {
      const index = this.arrived++;
      const number = this.paths.numberOf(row.path);
      rows.numbers[index] = number;
      human += rows.human[index] = row.human;
      ai += rows.ai[index] = row.ai;
      total += rows.total[index] = row.total;
      const place = this.#placeOf(number);
      this.#places[number] = this.arrived;
      if (place === 0) continue;
      const replaced = rows.row(place - 1);
      this.#replaced.add(place - 1);
      this.hasRepeats ||= place <= start && equalCounts(replaced, row);
      human -= replaced.human;
      ai -= replaced.ai;
      total -= replaced.total;
    }
    this.sum = { human, ai, total };
    return page.length - (this.#replaced.size - replacedBefore);
  }

  #placeOf(number: number): number {
    if (number >= this.#places.length)
      this.#places = grown(this.#places, new Int32Array(Math.max(this.paths.size, 2 * number)));
    return this.#places[number] ?? 0;
  }

  /** The rows with all counts of a path added up, if that accounts for `totals`. */
  merged(totals: ViewCounts): Rows | undefined {
    const extra = new Map<string, ViewCounts>();
    let missing = subtractCounts(totals, this.sum);
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    const merged = Array.from(this.rows, (row) => ({
      ...row,
      ...addCounts(row, extra.get(row.path) ?? NO_VIEWS),
    }));
    return Rows.of(merged, this.paths);
  }
}
