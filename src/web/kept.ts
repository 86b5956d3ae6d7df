import pLimit from 'p-limit';
import { filledIn, type Parameters } from '../warehouse/query.js';

/** How the queries of pages call the macros that most of their time goes into. */
const CALLS = /\b(?:changes\(\$from, \$to, \$shift, per := (?:'page'|'site'|\$per)\)|movers\(\$week\))/g;

/** A range has two or three, of which that of its pages is large: about 50 MB for 200,000 pages. */
const MOST_KEPT = 18;

/** Has a database of its own for them, because the history is read-only. */
export const ATTACH_KEPT = "ATTACH ':memory:' AS kept (READ_WRITE, COMPRESS)";

interface Table {
  readonly name: string;
  users: number;
}

/**
 * The changes of the ranges that were asked for last, and the pages that moved, in tables of one opened history. Sorting,
 * searching and filtering a list, the lists of one page, and the sections read the same ones.
 */
export class KeptChanges {
  readonly #tables = new Map<string, Table>();
  readonly #oneAtATime = pLimit(1);
  #made = 0;

  /** Runs a query with `run`, which may also have to run others before. */
  async reading<Rows>(
    sql: string,
    parameters: Parameters,
    run: (sql: string) => Promise<Rows>,
  ): Promise<Rows> {
    const used: Table[] = [];
    let text = sql;
    try {
      for (const call of new Set(sql.match(CALLS))) {
        // DuckDB simplifies a query for values that it has, not for parameters.
        const rows = filledIn(`FROM ${call} WHERE project = $project`, parameters);
        const table = await this.#oneAtATime(() => this.#use(rows, run));
        used.push(table);
        text = text.replaceAll(call, table.name);
      }
      return await run(text);
    } finally {
      for (const table of used) table.users -= 1;
    }
  }

  async #use(rows: string, run: (sql: string) => Promise<unknown>): Promise<Table> {
    const table = this.#tables.get(rows) ?? { name: `kept.rows_${this.#made++}`, users: 0 };
    if (!this.#tables.has(rows)) await run(`CREATE TABLE ${table.name} AS ${rows}`);
    this.#tables.delete(rows);
    this.#tables.set(rows, table);
    for (const [other, { name, users }] of this.#tables)
      if (this.#tables.size > MOST_KEPT && users === 0 && other !== rows) {
        await run(`DROP TABLE ${name}`);
        this.#tables.delete(other);
      }
    table.users += 1;
    return table;
  }
}
