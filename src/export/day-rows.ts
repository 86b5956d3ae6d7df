import { PagingError } from '../api/errors.js';
import { type PageViews, TOO_MANY_VIEWS, type ViewCounts } from '../api/schema.js';
import { thousands } from '../format/numbers.js';
import { type CountedPath, type DayCounts, type ProjectPaths, rowsOfCounts } from '../history/days.js';
import { addCounts, equalCounts, NO_VIEWS, subtractCounts, sumCounts } from './totals.js';

/** The numbers of a row. */
const NUMBERS = 4;

/**
 * Collects the rows of a day as they arrive, as numbers: no object of a page is kept. Of a repeated path, the latest row
 * counts.
 */
export class DayRows {
  /** The totals of the site, as on the last page. */
  totals: ViewCounts = NO_VIEWS;
  /** Whether all pages had the same totals. */
  isSteady = true;
  /** Whether the totals of each page were those of its own rows. */
  #areOfPages = true;
  /** Rows that a later row of the same path replaced. */
  readonly replaced: CountedPath[] = [];
  /** Whether a page repeated a row of an earlier page, as happens when rows move between two requests. */
  hasRepeats = false;
  /** The rows in the order in which they arrived, each as four numbers: the id of its path, and its counts. */
  #numbers = new Float64Array(NUMBERS * 1024);
  #arrived = 0;
  /** A bit for each id that arrived. */
  #seen = new Uint32Array(256);
  /** The index of the latest row of each path, once a path arrived twice. */
  #latest: Map<number, number> | undefined;
  #size = 0;
  /** Which of them were requested again, by index. */
  readonly #again = new Set<number>();
  readonly #sum = { ...NO_VIEWS };

  constructor(private readonly paths: ProjectPaths) {}

  /** The number of paths. */
  get size(): number {
    return this.#size;
  }

  get sum(): ViewCounts {
    return this.#sum;
  }

  /** The totals minus the sum of the rows. */
  get unattributed(): ViewCounts {
    return subtractCounts(this.totals, this.sum);
  }

  get addsUp(): boolean {
    return equalCounts(this.sum, this.totals);
  }

  /** Whether the totals are those of one page each, instead of all rows. */
  get hasPageTotals(): boolean {
    return this.#areOfPages && !this.addsUp;
  }

  /** The rows in their places on the platform. */
  get places(): CountedPath[] {
    return this.#indexes()
      .filter((index) => !this.#again.has(index))
      .map((index) => this.#rowAt(index));
  }

  /** One row for each path. */
  get rows(): CountedPath[] {
    return rowsOfCounts(this.counts);
  }

  /** The same as numbers. */
  get counts(): DayCounts {
    const [numbers, latest] = [this.#numbers, this.#latest];
    const ids = new Int32Array(this.#size);
    const [human, ai, total] = [
      new Float64Array(ids.length),
      new Float64Array(ids.length),
      new Float64Array(ids.length),
    ];
    for (let [index, to] = [0, 0]; index < this.#arrived; index++) {
      const at = NUMBERS * index;
      const id = numbers[at] ?? 0;
      if (latest !== undefined && latest.get(id) !== index) continue;
      ids[to] = id;
      human[to] = numbers[at + 1] ?? 0;
      ai[to] = numbers[at + 2] ?? 0;
      total[to] = numbers[at + 3] ?? 0;
      to++;
    }
    return { paths: this.paths, ids, human, ai, total };
  }

  /**
   * Adds the rows of one page, the first of which may be requested `again`. Throws a `PagingError` for impossible counts.
   */
  add(totals: ViewCounts, page: readonly PageViews[], again: readonly PageViews[] = []): void {
    const expected = new Set(again.map(({ path }) => this.paths.idOf(path)));
    const start = this.#begin(totals);
    this.#areOfPages &&= equalCounts(totals, sumCounts(page));
    again.forEach((_, index) => this.#again.add(start + index));
    for (const row of page)
      this.#addRow(this.paths.idOf(row.path), row.human, row.ai, row.total, start, expected);
    this.#expectPossible();
  }

  /** Takes the sum of all rows for the totals. */
  addUp(): void {
    this.totals = { ...this.sum };
  }

  /** Adds the rows of another reading of the day. */
  addCounts(totals: ViewCounts, { ids, human, ai, total }: DayCounts): void {
    const start = this.#begin(totals);
    ids.forEach((id, index) => {
      this.#addRow(id, human[index] ?? 0, ai[index] ?? 0, total[index] ?? 0, start);
    });
    this.#expectPossible();
  }

  /** The rows with all counts of a path added up, if that accounts for the totals. */
  merged(): DayCounts | undefined {
    const extra = new Map<number, ViewCounts>();
    let missing = this.unattributed;
    for (const row of this.replaced) {
      missing = subtractCounts(missing, row);
      extra.set(row.path, addCounts(extra.get(row.path) ?? NO_VIEWS, row));
    }
    if (extra.size === 0 || !equalCounts(missing, NO_VIEWS)) return undefined;
    const { paths, ids, ...columns } = this.counts;
    const add = (name: keyof ViewCounts) =>
      columns[name].map((count, index) => count + (extra.get(ids[index] ?? 0)?.[name] ?? 0));
    return { paths, ids, human: add('human'), ai: add('ai'), total: add('total') };
  }

  /** Takes the totals of a page, and returns the index of its first row. */
  #begin(totals: ViewCounts): number {
    this.isSteady &&= this.#size === 0 || equalCounts(this.totals, totals);
    this.totals = totals;
    return this.#arrived;
  }

  #addRow(path: number, human: number, ai: number, total: number, start: number, expected?: Set<number>) {
    const index = this.#arrived++;
    const at = NUMBERS * index;
    if (at === this.#numbers.length) this.#numbers = copyTo(new Float64Array(2 * at), this.#numbers);
    this.#numbers[at] = path;
    this.#numbers[at + 1] = human;
    this.#numbers[at + 2] = ai;
    this.#numbers[at + 3] = total;
    const place = this.#placeOf(path, index);
    this.#sum.human += human;
    this.#sum.ai += ai;
    this.#sum.total += total;
    if (place === undefined) return;
    const known = this.#rowAt(place);
    this.#sum.human -= known.human;
    this.#sum.ai -= known.ai;
    this.#sum.total -= known.total;
    const isSame = equalCounts(known, { human, ai, total });
    if (isSame && expected?.delete(path) === true) return;
    this.replaced.push(known);
    this.hasRepeats ||= isSame && place < start;
  }

  #expectPossible(): void {
    const { sum, totals } = this;
    const most = Math.max(sum.human, sum.ai, sum.total, totals.human, totals.ai, totals.total);
    if (most >= TOO_MANY_VIEWS)
      throw new PagingError(`the platform reports ${thousands(most)} views, which cannot be right`);
  }

  /** Takes note of where a path is now, and returns where it was before. */
  #placeOf(path: number, index: number): number | undefined {
    const word = path >>> 5;
    while (word >= this.#seen.length) this.#seen = copyTo(new Uint32Array(2 * this.#seen.length), this.#seen);
    const bits = this.#seen[word] ?? 0;
    const bit = 1 << (path & 31);
    let place: number | undefined;
    if ((bits & bit) === 0) {
      this.#seen[word] = bits | bit;
      this.#size++;
    } else {
      // Most days have no path twice, and need no map.
      this.#latest ??= new Map(this.#indexes(index).map((one) => [this.#rowAt(one).path, one]));
      place = this.#latest.get(path);
    }
    this.#latest?.set(path, index);
    return place;
  }

  #rowAt(index: number): CountedPath {
    const at = (offset: number) => this.#numbers[NUMBERS * index + offset] ?? 0;
    return { path: at(0), human: at(1), ai: at(2), total: at(3) };
  }

  #indexes(count = this.#arrived): number[] {
    return Array.from({ length: count }, (_, index) => index);
  }
}

function copyTo<Numbers extends Float64Array | Uint32Array>(larger: Numbers, numbers: Numbers): Numbers {
  larger.set(numbers);
  return larger;
}
