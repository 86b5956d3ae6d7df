import { type DuckDBConnection, DuckDBDataChunk, type DuckDBType, type DuckDBValue } from '@duckdb/node-api';
import pLimit from 'p-limit';
import type { z } from 'zod';
import { messageOf, type StorageError } from '../errors.js';
import type { LiveFile } from './live-file.js';
import { inTransaction, type Parameters, queryRows, type Reader, runStatement } from './query.js';
import { isOfStorage, storageFailure } from './storage-failure.js';

/** Work that shares a transaction with others. */
interface GroupedWork {
  /** Returns what reports its success once the transaction is committed. */
  readonly together: (transaction: Transaction) => Promise<() => void>;
  readonly alone: () => Promise<void>;
}

/**
 * The live database, open for writing. One connection serves everything, so transactions take turns: while one is
 * running, other queries wait.
 */
export class Warehouse implements Reader {
  readonly #inTurn = pLimit(1);
  /** What waits for the next group commit. */
  readonly #group: GroupedWork[] = [];
  #failure: StorageError | undefined;
  #foldFailure: StorageError | undefined;
  #isStricken = false;
  /** Work under way that needs one thread. */
  #withOneThread = 0;

  constructor(
    private readonly file: LiveFile,
    private readonly release: () => Promise<void>,
  ) {}

  get path(): string {
    return this.file.path;
  }

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return this.#whileSound(() => queryRows(this.file.connection, sql, row, parameters));
  }

  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it throws. `work` must use the
   * `Transaction` that it is given; asking the warehouse itself from inside would wait forever.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#whileSound(async () => {
      const { connection } = this.file;
      const result = await inTransaction(connection, async () => {
        const transaction = new Transaction(connection);
        const done = await work(transaction);
        await transaction.flush();
        return done;
      });
      // Reported by `close`: what was committed is safe in the log, and the work can go on.
      await this.#foldLargeLog();
      return result;
    });
  }

  /**
   * As `transaction`, in one commit with all other work that waits for its turn: a commit costs more than most work. When
   * the transaction fails, each piece of work is tried again by itself, so it must bear being done twice.
   */
  groupCommit<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#group.push({
        together: async (transaction) => {
          const result = await work(transaction);
          return () => {
            resolve(result);
          };
        },
        alone: () => this.transaction(work).then(resolve, reject),
      });
      if (this.#group.length === 1) void this.#commitGroup();
    });
  }

  async #commitGroup(): Promise<void> {
    let group: GroupedWork[] = [];
    const done = await this.transaction(async (transaction) => {
      group = this.#group.splice(0);
      const ends: (() => void)[] = [];
      for (const { together } of group) ends.push(await together(transaction));
      return ends;
    }).catch(() => undefined);
    if (done !== undefined) for (const end of done) end();
    // Nothing was committed. A failure of the storage fails each of them in its own words.
    else for (const { alone } of group.length > 0 ? group : this.#group.splice(0)) await alone();
  }

  /** For work that must not be inside a transaction, such as ATTACH. */
  exclusive<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    return this.#whileSound(() => work(this.file.connection), isFatal);
  }

  /**
   * Runs `work` with one thread of DuckDB's: many small transactions take a fifth less processor time than with several
   * threads that wait for each other.
   */
  async withOneThread<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#withOneThread++ === 0) await this.#setThreads();
    try {
      return await work();
    } finally {
      if (--this.#withOneThread === 0) await this.#setThreads();
    }
  }

  /** Waits for what is running, folds the log into the file if it has grown large, and lets go of the file. */
  async close(): Promise<void> {
    try {
      await this.#whileSound(async () => {
        await this.#foldLargeLog();
        if (this.#foldFailure !== undefined) throw this.#foldFailure;
      });
    } finally {
      await this.#inTurn(this.release);
    }
  }

  /** Counts a failure met beside the file, too: a disk without room for a copy has none for the log. */
  noteFailure(error: unknown): void {
    this.#isStricken ||= isOfStorage(error);
  }

  async #foldLargeLog(): Promise<void> {
    if (this.#isStricken || this.#foldFailure !== undefined || !(await this.file.isLogLarge())) return;
    try {
      await this.file.rewrite();
      if (this.#withOneThread > 0) await this.file.connection.run('SET threads = 1');
    } catch (error) {
      const doing = `fold the log of ${this.path} into it (nothing is lost: the log is kept)`;
      this.#foldFailure = storageFailure(doing, error);
      if (this.file.isOutdated) this.#failure = this.#foldFailure;
    }
  }

  #setThreads(): Promise<void> {
    return this.exclusive(async (connection) => {
      await connection.run(this.#withOneThread > 0 ? 'SET threads = 1' : 'RESET threads');
    });
  }

  /** Takes its turn. After a storage failure nothing more is written: what was committed stays, what follows might not. */
  #whileSound<Result>(work: () => Promise<Result>, isFailure = isOfStorage): Promise<Result> {
    return this.#inTurn(async () => {
      if (this.#failure !== undefined) throw this.#failure;
      try {
        return await work();
      } catch (error) {
        this.noteFailure(error);
        if (!isFailure(error)) throw error;
        this.#failure = storageFailure(`go on with ${this.path}`, error);
        throw this.#failure;
      }
    });
  }
}

/** After such an error DuckDB takes nothing more. Others may be of another file, such as a publication. */
const isFatal = (error: unknown): boolean => messageOf(error).startsWith('FATAL Error');

/** The most rows that a DuckDB vector holds. */
const CHUNK_ROWS = 2048;

/** A column of a table, and where its value in a row comes from. */
export interface Column<Row> {
  readonly type: DuckDBType;
  readonly value: (row: Row) => DuckDBValue;
}

/** Rows that wait to be appended: those of each call, as columns. */
interface Appended {
  readonly types: readonly DuckDBType[];
  readonly parts: DuckDBValue[][][];
}

/** A transaction under way: see `Warehouse.transaction`. */
export class Transaction implements Reader {
  readonly #appended = new Map<string, Appended>();

  constructor(readonly connection: DuckDBConnection) {}

  async query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    await this.flush();
    return queryRows(this.connection, sql, row, parameters);
  }

  /** Runs a statement whose rows nobody needs. */
  async execute(sql: string, parameters: Parameters = {}): Promise<void> {
    await this.flush();
    await runStatement(this.connection, sql, parameters);
  }

  /**
   * Appends rows to a table column by column: the fastest way in. `columns` are all of the table's, in its own order.
   * The rows wait for the next statement or the end of the transaction, so that many small appends cost no more than one.
   */
  append<Row>(table: string, columns: readonly Column<Row>[], rows: readonly Row[]): void {
    const { parts } = this.#appended.get(table) ?? this.#begin(table, columns);
    parts.push(columns.map(({ value }) => rows.map(value)));
  }

  #begin(table: string, columns: readonly { readonly type: DuckDBType }[]): Appended {
    const appended = { types: columns.map(({ type }) => type), parts: [] };
    this.#appended.set(table, appended);
    return appended;
  }

  /** Hands the appended rows to DuckDB. When it throws, nothing of them is left behind that could still be written. */
  async flush(): Promise<void> {
    for (const [table, { types, parts }] of this.#appended) {
      this.#appended.delete(table);
      const columns = types.map(
        (_, index) => parts[0]?.[index]?.concat(...parts.slice(1).map((part) => part[index] ?? [])) ?? [],
      );
      const appender = await this.connection.createAppender(table);
      try {
        for (let start = 0; start < (columns[0]?.length ?? 0); start += CHUNK_ROWS) {
          const part = columns.map((values) => values.slice(start, start + CHUNK_ROWS));
          const chunk = DuckDBDataChunk.create(types, part[0]?.length);
          chunk.setColumns(part);
          appender.appendDataChunk(chunk);
        }
        appender.flushSync();
      } catch (error) {
        appender.clear();
        throw error;
      } finally {
        appender.closeSync();
      }
    }
  }
}
