import type { PageViews, ViewCounts } from '../api/schema.js';
import { grown, Texts } from '../warehouse/texts.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/** Rows of page views in columns: as objects, they would make an export a fifth slower. */
export class Rows implements Iterable<PageViews> {
  constructor(
    readonly paths: Texts,
    /** The numbers of the paths. */
    readonly numbers: Int32Array,
    readonly human: Float64Array,
    readonly ai: Float64Array,
    readonly total: Float64Array,
  ) {}

  /** With room for `size` rows. */
  static empty(paths: Texts, size: number): Rows {
    const column = () => new Float64Array(size);
    return new Rows(paths, new Int32Array(size), column(), column(), column());
  }

  static of(rows: readonly PageViews[], paths = new Texts()): Rows {
    const all = Rows.empty(paths, rows.length);
    for (const [index, row] of rows.entries()) all.set(index, row);
    return all;
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
  set(index: number, row: PageViews): number {
    this.human[index] = row.human;
    this.ai[index] = row.ai;
    this.total[index] = row.total;
    return (this.numbers[index] = this.paths.numberOf(row.path));
  }

  slice(from: number, to: number): Rows {
    const { paths, numbers, human, ai, total } = this;
    return new Rows(
      paths,
      numbers.subarray(from, to),
      human.subarray(from, to),
      ai.subarray(from, to),
      total.subarray(from, to),
    );
  }

  /** The same rows, with room for `size` in all. */
  withRoom(size: number): Rows {
    const { paths, numbers, human, ai, total } = this;
    const longer = Rows.empty(paths, size);
    grown(numbers, longer.numbers);
    grown(human, longer.human);
    grown(ai, longer.ai);
    grown(total, longer.total);
    return longer;
  }
}

/**
 * Collects the rows of a day as they arrive. Of a repeated path, the latest row counts. Days have most
 * of their paths in common, so they share `paths`.
 */
export class DayRows {
  /** Number of rows that arrived. */
  arrived = 0;
  sum: ViewCounts = NO_VIEWS;
  /** Rows that a later row of the same path replaced. */
  readonly replaced: PageViews[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  /** The rows that arrived, and room for more. */
  #rows: Rows;
  /** Indices of rows that are not the latest of their path. */
  readonly #older = new Set<number>();
  /** By the number of a path, one more than the index of its latest row; 0 for none. */
  #places = new Int32Array();

  constructor(
    private readonly paths = new Texts(),
    rows: Iterable<PageViews> = [],
  ) {
    this.#rows = Rows.empty(paths, 0);
    this.add([...rows]);
  }

  /** The number of paths. */
  get size(): number {
    return this.arrived - this.#older.size;
  }

  /** One row for each path. */
  get rows(): Rows {
    const all = this.slice(0, this.arrived);
    if (this.#older.size === 0) return all;
    return Rows.of(
      [...all].filter((_, index) => !this.#older.has(index)),
      this.paths,
    );
  }

  /** Rows as they arrived, by their indices in the order of arrival. */
  slice(from: number, to: number): Rows {
    return this.#rows.slice(from, to);
  }

  /** Adds the rows of one page, some of which may be requested `again`. Returns whether it has any other or new ones. */
  add(page: readonly PageViews[], again: readonly PageViews[] = []): boolean {
    const expected = new Set(again.map(({ path }) => path));
    const start = this.arrived;
    const size = start + page.length;
    if (size > this.#rows.length) this.#rows = this.#rows.withRoom(Math.max(size, 2 * this.#rows.length));
    const rows = this.#rows;
    let { human, ai, total } = this.sum;
    let added = page.length;
    for (const row of page) {
      const index = this.arrived++;
      const number = rows.set(index, row);
      human += row.human;
      ai += row.ai;
      total += row.total;
      const place = this.#placeOf(number);
      this.#places[number] = this.arrived;
      if (place === 0) continue;
      const known = rows.row(place - 1);
      this.#older.add(place - 1);
      human -= known.human;
      ai -= known.ai;
      total -= known.total;
      const isSame = equalCounts(known, row);
      if (isSame && expected.delete(row.path)) continue;
      added--;
      this.replaced.push(known);
      this.hasRepeats ||= isSame && place <= start;
    }
    this.sum = { human, ai, total };
    return added > 0;
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
      path: row.path,
      ...addCounts(row, extra.get(row.path) ?? NO_VIEWS),
    }));
    return Rows.of(merged, this.paths);
  }
}
