import type { PageViews, ViewCounts } from '../api/schema.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts } from './totals.js';

/** More paths are not kept between days, because visitors can request any number of made-up ones. */
const MAX_PATHS = 200_000;

/**
 * The paths of a project, numbered in order of arrival. Days have most of their paths in common, and
 * numbers are compared quickly. Each text is kept only once.
 */
export class Paths {
  readonly #known = new Map<string, { readonly path: string; readonly number: number }>();

  get areTooMany(): boolean {
    return this.#known.size > MAX_PATHS;
  }

  /** A path as it was first given, and its number. */
  known(path: string): { readonly path: string; readonly number: number } {
    let known = this.#known.get(path);
    if (known === undefined) this.#known.set(path, (known = { path, number: this.#known.size }));
    return known;
  }
}

/** The rows of a day as they arrive. A repeated path keeps its latest counts. */
export class DayRows {
  readonly rows: PageViews[] = [];
  /** Counts that a later row of the same path replaced. */
  readonly replaced: PageViews[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  sum: ViewCounts = NO_VIEWS;
  readonly #paths: Paths;
  /** By the number of its path, one more than the index of a row; 0 for none. */
  #places = new Int32Array(1024);

  constructor(paths = new Paths()) {
    this.#paths = paths;
  }

  /** Adds the rows of one page. Returns how many of its paths are new. */
  add(page: readonly PageViews[]): number {
    const start = this.rows.length;
    let { human, ai, total } = this.sum;
    for (const row of page) {
      const { path, number } = this.#paths.known(row.path);
      // The text from this response does not have to be kept.
      row.path = path;
      human += row.human;
      ai += row.ai;
      total += row.total;
      const place = this.#placeOf(number);
      if (place === 0) {
        this.#places[number] = this.rows.push(row);
        continue;
      }
      const replaced = this.#replace(place - 1, row, start);
      human -= replaced.human;
      ai -= replaced.ai;
      total -= replaced.total;
    }
    this.sum = { human, ai, total };
    return this.rows.length - start;
  }

  #placeOf(number: number): number {
    if (number >= this.#places.length) {
      const places = new Int32Array(2 * number);
      places.set(this.#places);
      this.#places = places;
    }
    return this.#places[number] ?? 0;
  }

  #replace(index: number, row: PageViews, start: number): PageViews {
    const known = this.rows[index] ?? row;
    this.rows[index] = row;
    this.replaced.push(known);
    this.hasRepeats ||= index < start && equalCounts(known, row);
    return known;
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
    return this.rows.map((row) => ({ ...row, ...addCounts(row, extra.get(row.path) ?? NO_VIEWS) }));
  }
}
