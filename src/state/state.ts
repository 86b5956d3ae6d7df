import { chmodSync } from 'node:fs';
import { z } from 'zod';
import { sleepFor } from '../sleep.js';
import {
  damaged,
  type Database,
  failureOf,
  isBusy,
  openDatabase,
  retriedRead,
  stillBusy,
} from './database.js';

/** Values by the names in a statement; names that the statement does not have are ignored. */
export type Bindings = Readonly<Record<string, unknown>>;
type Bound = string | number | null | Uint8Array;
type Statement = ReturnType<Database['prepare']>;

/** How long a transaction is tried again while other processes read or write. */
const MAX_BUSY_MS = 30_000;
const RETRY_DELAY_MS = 50;

/**
 * What Readership did and decided: `state.db`. Several processes may have it open and write to it. Calls are
 * synchronous, so a transaction is a function.
 */
export class State {
  readonly #statements = new Map<string, { statement: Statement; names: readonly string[] }>();

  constructor(
    readonly path: string,
    private readonly database: Database,
  ) {}

  /** The rows of one statement, checked against `row`. Days and times come as text. */
  all<Row>(sql: string, row: z.ZodType<Row>, parameters?: Bindings): Row[] {
    return z
      .array(row)
      .parse(this.#execute(sql, parameters, (statement, values): unknown => statement.all(values)));
  }

  /** As `all`, for a statement with at most one row. */
  get<Row>(sql: string, row: z.ZodType<Row>, parameters?: Bindings): Row | undefined {
    return this.all(sql, row, parameters)[0];
  }

  /** Runs a statement that changes rows, inside a transaction. Returns how many rows it changed. */
  run(sql: string, parameters?: Bindings): number {
    if (!this.#isInTransaction()) throw new Error('this statement must be inside a transaction');
    return this.#execute(sql, parameters, (statement, values) => statement.run(values).changes);
  }

  /**
   * Runs `work` in a transaction: committed when it returns, rolled back when it throws. While other processes read or
   * write, it is tried again, so `work` must be repeatable. It must not wait for anything. Throws a `StorageError` if
   * the file cannot be written.
   */
  async transaction<Result>(work: () => Result): Promise<Result> {
    const endMs = performance.now() + MAX_BUSY_MS;
    for (;;) {
      try {
        return this.#once(work);
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (performance.now() >= endMs) throw stillBusy(this.path, MAX_BUSY_MS, error);
      }
      await sleepFor(RETRY_DELAY_MS);
    }
  }

  /** Runs one statement that changes rows in a transaction of its own. Returns how many rows it changed. */
  change(sql: string, parameters?: Bindings): Promise<number> {
    return this.transaction(() => this.run(sql, parameters));
  }

  /**
   * Throws a `StorageError` if the file is damaged, as far as its structure, its indexes and the constraints of its
   * tables show it. Four milliseconds of CPU for each megabyte.
   */
  expectSound(): void {
    const row = z.object({ integrity_check: z.string() });
    const found = this.get('PRAGMA integrity_check(1)', row)?.integrity_check ?? 'no answer';
    if (found !== 'ok') throw damaged(this.path, new Error(found));
  }

  /**
   * Writes a copy to a new file, without pages of unfinished days and counts of requests: a copy of `state.db` itself may
   * be torn.
   */
  copyTo(path: string): void {
    this.#execute('VACUUM INTO $path', { path }, (statement, values) => statement.run(values));
    chmodSync(path, 0o600);
    try {
      const copy = openDatabase(path);
      try {
        // Nobody else knows the copy, and one that is incomplete is not used.
        copy.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
        copy.exec('DELETE FROM kept_pages; DELETE FROM requests; VACUUM');
      } finally {
        copy.close();
      }
    } catch (error) {
      throw failureOf('write', path, error);
    }
  }

  close(): void {
    this.#statements.clear();
    this.database.close();
  }

  #isInTransaction(): boolean {
    return this.database.isTransaction;
  }

  #once<Result>(work: () => Result): Result {
    if (this.#isInTransaction()) throw new Error('a transaction cannot begin inside another');
    this.#named('write to', () => this.database.exec('BEGIN IMMEDIATE'));
    try {
      const result = work();
      if (result instanceof Promise) throw new Error('a transaction cannot wait for anything');
      this.#named('write to', () => this.database.exec('COMMIT'));
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #rollBack(): void {
    // Some errors, such as a full disk, have rolled it back already.
    if (!this.#isInTransaction()) return;
    try {
      this.database.exec('ROLLBACK');
    } catch {
      // The error that is about to be thrown says why, and the next process that opens the file rolls it back.
    }
  }

  #execute<Result>(
    sql: string,
    parameters: Bindings = {},
    execute: (statement: Statement, values: Record<string, Bound>) => Result,
  ): Result {
    const once = () =>
      this.#named('use', () => {
        const { statement, names } = this.#prepared(sql);
        const values = names.map((name) => [name, bound(name, parameters[name])] as const);
        return execute(statement, Object.fromEntries(values));
      });
    // Inside a transaction, the whole of it is tried again.
    return this.#isInTransaction() ? once() : retriedRead(this.path, once);
  }

  #prepared(sql: string) {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const prepared = { statement: this.database.prepare(sql), names: namesIn(sql) };
    this.#statements.set(sql, prepared);
    return prepared;
  }

  #named<Result>(doing: string, work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw failureOf(doing, this.path, error);
    }
  }
}

/** Literals, comments, and parameters of a statement. */
const TOKENS = /'[^']*'|--.*|\/\*[^]*?\*\/|(?<sign>[$:@?])(?<name>\w*)/g;

/** The names of a statement's parameters. SQLite would bind NULL to one that is written in another way. */
function namesIn(sql: string): string[] {
  const names = new Set<string>();
  for (const { groups } of sql.matchAll(TOKENS)) {
    const { sign, name } = groups ?? {};
    if (sign === undefined || name === undefined) continue;
    if (sign !== '$') throw new Error(`a parameter is written as $name, not ${sign}${name}`);
    names.add(name);
  }
  return [...names];
}

/** SQLite would bind nothing for a value that is missing, and keep the one of the call before. */
function bound(name: string, value: unknown): Bound {
  if (value === null || value instanceof Uint8Array) return value;
  // It would be cut off at a NUL when it is read.
  if (typeof value === 'string') return value.replaceAll('\0', '\uFFFD');
  // A larger integer could be stored, but not read.
  if (
    typeof value === 'number' &&
    Number.isFinite(value) &&
    (!Number.isInteger(value) || Number.isSafeInteger(value))
  )
    return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value instanceof Date) return value.toISOString();
  throw new RangeError(`no value for parameter $${name} that SQLite can hold: ${typeof value}`);
}
