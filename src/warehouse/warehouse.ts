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

  constructor(private readonly file: LiveFile) {}

  get path(): string {
    return this.file.path;
  }

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return this.#whileSound(() => queryRows(this.file.connection, sql, row, parameters));
  }

  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it throws. `work`
   * must use the given `Transaction`; using the warehouse itself inside it would deadlock.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#whileSound(async () => {
      const { connection } = this.file;
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
      await this.#foldLargeLog(false);
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
    return this.#whileSound(() => work(this.file.connection), isFatal);
  }

  /** Replaces the live file with one that `write` fills: see `LiveFile.rewrite`. */
  rewrite(
    write: (connection: DuckDBConnection) => Promise<void>,
    use: (next: string) => Promise<void>,
  ): Promise<void> {
    return this.#whileSound(
      () => this.file.rewrite(write, use),
      (error) => this.file.isOutdated || isFatal(error),
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

  /** Waits for running work, folds the log into the file if it is large, and releases the file. */
  async close(): Promise<void> {
    try {
      await this.#whileSound(async () => {
        await this.#foldLargeLog(true);
        if (this.#foldFailure !== undefined) throw this.#foldFailure;
      });
    } finally {
      await this.#inTurn(() => this.file.close());
    }
  }

  /** Reports a failure outside the file: a disk without space for a copy has none for the log either. */
  noteFailure(error: unknown): void {
    this.#hasStorageFailed ||= isOfStorage(error);
  }

  async #foldLargeLog(isAtEnd: boolean): Promise<void> {
    if (this.#hasStorageFailed || this.#foldFailure !== undefined || !(await this.file.isLogLarge(isAtEnd)))
      return;
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

  /** Waits for its turn. After a storage failure nothing more is written, because later commits might be lost. */
  #whileSound<Result>(work: () => Promise<Result>, isFailure = isOfStorage): Promise<Result> {
    return this.#inTurn(async () => {
      if (this.#failure !== undefined) throw this.#failure;
      try {
        return await work();
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
