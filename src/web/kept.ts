import pLimit from 'p-limit';
import type { Parameters } from '../warehouse/query.js';

/** How the queries of pages call the macro that most of their time goes into. */
const CALL = /\bchanges\(\$from, \$to, \$shift(?:, per := \$per)?\)/;

/** Each takes about 50 MB for 200,000 pages. */
const MOST_KEPT = 4;

/** Has a database of its own for them, because the history is read-only. */
export const ATTACH_KEPT = "ATTACH ':memory:' AS kept (READ_WRITE, COMPRESS)";

/**
 * The changes of the ranges that were asked for last, in tables of one opened history. Sorting, searching and filtering a
 * list, and the lists of one page, read the same ones.
 */
export class KeptChanges {
  readonly #tables = new Map<string, { readonly name: string; users: number }>();
  readonly #oneAtATime = pLimit(1);
  #made = 0;

  /** Runs a query with `run`, which may also have to run others before. */
  async reading<Rows>(
    sql: string,
    parameters: Parameters,
    run: (sql: string) => Promise<Rows>,
  ): Promise<Rows> {
    const [call] = CALL.exec(sql) ?? [];
    if (call === undefined) return run(sql);
    const { project, from, to, shift, per } = parameters;
    const key = JSON.stringify([project, from, to, shift, call.includes('$per') ? per : 'page']);
    const table = await this.#oneAtATime(() => this.#use(key, call, run));
    try {
      return await run(sql.replaceAll(call, table.name));
    } finally {
      table.users -= 1;
    }
  }

  async #use(key: string, call: string, run: (sql: string) => Promise<unknown>) {
    const table = this.#tables.get(key) ?? { name: `kept.changes_${this.#made++}`, users: 0 };
    if (!this.#tables.has(key))
      await run(`CREATE TABLE ${table.name} AS FROM ${call} WHERE project = $project`);
    this.#tables.delete(key);
    this.#tables.set(key, table);
    for (const [other, { name, users }] of this.#tables)
      if (this.#tables.size > MOST_KEPT && users === 0 && other !== key) {
        await run(`DROP TABLE ${name}`);
        this.#tables.delete(other);
      }
    table.users += 1;
    return table;
  }
}
