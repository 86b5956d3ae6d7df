import type { DuckDBConnection } from '@duckdb/node-api';
import pLimit from 'p-limit';
import type { z } from 'zod';
import { messageOf, type StorageError } from '../errors.js';
import type { LiveFile } from './live-file.js';
import { inTransaction, type Parameters, queryRows, type Reader } from './query.js';
import { isOfStorage, storageFailure } from '../storage.js';
import { Transaction } from './transaction.js';

/**
 * The live database, open for writing. One connection serves everything, so transactions take turns: while one is
 * running, other queries wait.
 */
export class Warehouse implements Reader {
  readonly #inTurn = pLimit(1);
  /** Work waiting for the next group commit; each returns a function that reports success, for after the commit. */
  #group: ((transaction: Transaction) => Promise<() => void>)[] = [];
  #committed = Promise.resolve();
  #failure: StorageError | undefined;
  #foldFailure: StorageError | undefined;
  #hasStorageFailed = false;
  /** Number of running tasks that need single-threaded mode. */
  #withOneThread = 0;

  #file: LiveFile | undefined;

  /** `openFile` is called when the database is first used. */
  constructor(
    readonly path: string,
    private readonly openFile: () => Promise<LiveFile>,
  ) {}

  /** Opens the file, unless it is open. Throws as `openWarehouse` does. */
  async open(): Promise<void> {
    await this.#inTurn(() => this.#live());
  }

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return this.#whileSound(({ connection }) => queryRows(connection, sql, row, parameters));
  }

  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it throws. `work`
   * must use the given `Transaction`; using the warehouse itself inside it would deadlock.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#whileSound(async (file) => {
      const { connection } = file;
      const result = await inTransaction(connection, async () => {
        const transaction = new Transaction(connection);
        try {
          const done = await work(transaction);
          transaction.flush();
          return done;
        } catch (error) {
          transaction.discard();
          throw error;
        }
      });
      // Reported by `close`: commits are safe in the log, so work can continue.
      await this.#foldLargeLog(file, false);
      return result;
    });
  }

  /**
   * As `transaction`, in one commit with all other waiting work, because a commit costs more than most work. If the
   * transaction fails, each piece of work is retried separately, so it must be repeatable.
   */
  groupCommit<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#group.push(async (transaction) => {
        const result = await work(transaction);
        return () => resolve(result);
      });
      if (this.#group.length === 1) this.#committed = this.#commitGroup();
      // Nothing was committed. After a storage failure, each of them fails with its own message.
      this.#committed.catch(() => this.transaction(work).then(resolve, reject));
    });
  }

  async #commitGroup(): Promise<void> {
    const group = this.#group;
    const endGroup = () => {
      if (this.#group === group) this.#group = [];
    };
    const ends: (() => void)[] = [];
    await this.transaction(async (transaction) => {
      endGroup();
      for (const together of group) ends.push(await together(transaction));
    }).finally(endGroup);
    for (const end of ends) end();
  }

  /** For work that must not be inside a transaction, such as ATTACH. */
  exclusive<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    return this.#whileSound(({ connection }) => work(connection), isFatal);
  }

  /** Replaces the live file with one that `write` fills: see `LiveFile.rewrite`. */
  rewrite(
    write: (connection: DuckDBConnection) => Promise<void>,
    use: (next: string) => Promise<void>,
  ): Promise<void> {
    return this.#whileSound(
      (file) => file.rewrite(write, use),
      (error) => this.#file?.isOutdated === true || isFatal(error),
    );
  }

  /**
   * Runs `work` with a single DuckDB thread: many small transactions take a fifth less CPU time
   * than with several threads that wait for each other.
   */
  async withOneThread<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#withOneThread++ === 0) await this.#setThreads();
    try {
      return await work();
    } finally {
      if (--this.#withOneThread === 0) await this.#setThreads();
    }
  }

  /** Waits for running work, folds the log into the file if it is large, and releases the file, if it was opened. */
  async close(): Promise<void> {
    if (this.#file === undefined) return;
    try {
      await this.#whileSound(async (file) => {
        await this.#foldLargeLog(file, true);
        if (this.#foldFailure !== undefined) throw this.#foldFailure;
      });
    } finally {
      await this.#inTurn(() => this.#file?.close());
    }
  }

  /** Reports a failure outside the file: a disk without space for a copy has none for the log either. */
  noteFailure(error: unknown): void {
    this.#hasStorageFailed ||= isOfStorage(error);
  }

  async #foldLargeLog(file: LiveFile, isAtEnd: boolean): Promise<void> {
    if (this.#hasStorageFailed || this.#foldFailure !== undefined || !(await file.isLogLarge(isAtEnd)))
      return;
    try {
      await file.rewrite();
      if (this.#withOneThread > 0) await file.connection.run('SET threads = 1');
    } catch (error) {
      const doing = `fold the log of ${this.path} into it (nothing is lost: the log is kept)`;
      this.#foldFailure = storageFailure(doing, error);
      if (file.isOutdated) this.#failure = this.#foldFailure;
    }
  }

  async #live(): Promise<LiveFile> {
    return (this.#file ??= await this.openFile());
  }

  #setThreads(): Promise<void> {
    return this.exclusive(async (connection) => {
      await connection.run(this.#withOneThread > 0 ? 'SET threads = 1' : 'RESET threads');
    });
  }

  /** Waits for its turn. After a storage failure nothing more is written, because later commits might be lost. */
  #whileSound<Result>(work: (file: LiveFile) => Promise<Result>, isFailure = isOfStorage): Promise<Result> {
    return this.#inTurn(async () => {
      if (this.#failure !== undefined) throw this.#failure;
      const file = await this.#live();
      try {
        return await work(file);
      } catch (error) {
        this.noteFailure(error);
        if (!isFailure(error)) throw error;
        this.#failure = storageFailure(`continue with ${this.path}`, error);
        throw this.#failure;
      }
    });
  }
}

/**
 * After such an error DuckDB accepts no more statements. Other errors may concern another file,
 * such as a publication.
 */
const isFatal = (error: unknown): boolean => messageOf(error).startsWith('FATAL Error');
