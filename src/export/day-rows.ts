import type { PageViews, ViewCounts } from '../api/schema.js';
import { Texts } from '../warehouse/texts.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/**
 * The rows of a day as they arrive, in columns, which take less memory and time than objects. Of a
 * repeated path, the latest row counts. Days have most of their paths in common, so they share `paths`.
 */
export class DayRows implements Iterable<PageViews> {
  /** Number of rows that arrived. */
  arrived = 0;
  sum: ViewCounts = NO_VIEWS;
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  #numbers = new Int32Array();
  #human = new Float64Array();
  #ai = new Float64Array();
  #total = new Float64Array();
  /** Rows that a later row of the same path replaced. */
  readonly #replaced = new Set<number>();
  /** By the number of its path, one more than the index of the latest row; 0 for none. */
  #places = new Int32Array();

  constructor(readonly paths = new Texts()) {}

  static of(rows: Iterable<PageViews>, paths?: Texts): DayRows {
    const all = new DayRows(paths);
    all.add([...rows]);
    return all;
  }

  /** Number of rows, one for each path. */
  get length(): number {
    return this.arrived - this.#replaced.size;
  }

  *[Symbol.iterator](): Generator<PageViews, void, void> {
    for (let index = 0; index < this.arrived; index++) if (!this.#replaced.has(index)) yield this.#row(index);
  }

  /** The columns of the rows, with the numbers of the paths. */
  get columns() {
    const latest = (index: number) => !this.#replaced.has(index);
    const rows = <Column extends Int32Array | Float64Array>(column: Column) => {
      const all = column.subarray(0, this.arrived);
      return (this.#replaced.size === 0 ? all : all.filter((_, index) => latest(index))) as Column;
    };
    return {
      numbers: rows(this.#numbers),
      human: rows(this.#human),
      ai: rows(this.#ai),
      total: rows(this.#total),
    };
  }

  /** Rows as they arrived, by their places in the order of arrival. */
  slice(from: number, to: number): PageViews[] {
    return Array.from({ length: to - from }, (_, index) => this.#row(from + index));
  }

  /** Rows that a later row of the same path replaced. */
  get replaced(): PageViews[] {
    return [...this.#replaced].map((index) => this.#row(index));
  }

  /** Adds the rows of one page. Returns how many of its paths are new. */
  add(page: readonly PageViews[]): number {
    const [start, known] = [this.arrived, this.length];
    this.#makeRoom(start + page.length);
    let { human, ai, total } = this.sum;
    for (const row of page) {
      const index = this.arrived++;
      const number = this.paths.numberOf(row.path);
      this.#numbers[index] = number;
      human += this.#human[index] = row.human;
      ai += this.#ai[index] = row.ai;
      total += this.#total[index] = row.total;
      const place = this.#placeOf(number);
      this.#places[number] = this.arrived;
      if (place === 0) continue;
      const replaced = this.#row(place - 1);
      this.#replaced.add(place - 1);
      this.hasRepeats ||= place <= start && equalCounts(replaced, row);
      human -= replaced.human;
      ai -= replaced.ai;
      total -= replaced.total;
    }
    this.sum = { human, ai, total };
    return this.length - known;
  }

  #row(index: number): PageViews {
    return {
      path: this.paths.textOf(this.#numbers[index] ?? 0),
      human: this.#human[index] ?? 0,
      ai: this.#ai[index] ?? 0,
      total: this.#total[index] ?? 0,
    };
  }

  #makeRoom(rows: number): void {
    if (rows <= this.#numbers.length) return;
    const size = Math.max(rows, 2 * this.#numbers.length);
    this.#numbers = grown(this.#numbers, new Int32Array(size));
    this.#human = grown(this.#human, new Float64Array(size));
    this.#ai = grown(this.#ai, new Float64Array(size));
    this.#total = grown(this.#total, new Float64Array(size));
  }

  #placeOf(number: number): number {
    if (number >= this.#places.length)
      this.#places = grown(this.#places, new Int32Array(Math.max(this.paths.size, 2 * number)));
    return this.#places[number] ?? 0;
  }

  /** The rows with all counts of a path added up, if that accounts for `totals`. */
  merged(totals: ViewCounts): DayRows | undefined {
    const extra = new Map<string, ViewCounts>();
    let missing = subtractCounts(totals, this.sum);
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    const rows = [...this].map((row) => ({ ...row, ...addCounts(row, extra.get(row.path) ?? NO_VIEWS) }));
    return DayRows.of(rows, this.paths);
  }
}

/** A longer column with the values of a shorter one. */
function grown<Column extends Int32Array | Float64Array>(column: Column, longer: Column): Column {
  longer.set(column);
  return longer;
}
