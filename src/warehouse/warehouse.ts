import type { DuckDBConnection } from '@duckdb/node-api';
import pLimit from 'p-limit';
import type { z } from 'zod';
import { messageOf, type StorageError } from '../errors.js';
import { inTransaction } from './in-transaction.js';
import { type Parameters, queryRows, type Reader, runStatement } from './query.js';
import { isOfStorage, storageFailure } from './storage-failure.js';

/**
 * The live database, open for writing. One connection serves everything, so transactions take turns: while one is
 * under way, what others ask waits.
 */
export class Warehouse implements Reader {
  readonly #inTurn = pLimit(1);
  #failure: StorageError | undefined;
  #isStricken = false;

  constructor(
    readonly path: string,
    private readonly connection: DuckDBConnection,
    private readonly release: () => Promise<void>,
  ) {}

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return this.#whileSound(() => queryRows(this.connection, sql, row, parameters));
  }

  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it throws. `work` must use the
   * `Transaction` it is handed; asking the warehouse itself from inside would wait for ever.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#whileSound(() =>
      inTransaction(this.connection, () => work(new Transaction(this.connection))),
    );
  }

  /** For work that must not be inside a transaction, such as CHECKPOINT and ATTACH. */
  exclusive<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    return this.#whileSound(() => work(this.connection), isFatal);
  }

  /**
   * Runs `work` with one thread of DuckDB's: small transactions, one after another, take a fifth less of the processor
   * than with several that wait for each other.
   */
  async withOneThread<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.exclusive((connection) => connection.run('SET threads = 1'));
    try {
      return await work();
    } finally {
      await this.exclusive((connection) => connection.run('RESET threads'));
    }
  }

  /**
   * Waits for what is under way, folds the log into the file, and lets go of it. After a failure of the disk or of a
   * file, which whoever met it was told, the log is left to the next command.
   */
  async close(): Promise<void> {
    try {
      await this.#whileSound(async () => {
        if (!this.#isStricken) await this.connection.run('CHECKPOINT');
      });
    } finally {
      await this.#inTurn(this.release);
    }
  }

  /** What was met beside the file counts as well: a disk that has no room for a copy has none for the log. */
  noteFailure(error: unknown): void {
    this.#isStricken ||= isOfStorage(error);
  }

  /**
   * Takes its turn. After a failure beneath the file nothing more is written: what was committed stands, and what would
   * come after it might not.
   */
  #whileSound<Result>(work: () => Promise<Result>, isFailure = isOfStorage): Promise<Result> {
    return this.#inTurn(async () => {
      if (this.#failure !== undefined) throw this.#failure;
      try {
        return await work();
      } catch (error) {
        this.noteFailure(error);
        if (!isFailure(error)) throw error;
        this.#failure = storageFailure(`go on with ${this.path}`, this.path, error);
        throw this.#failure;
      }
    });
  }
}

/** After such an error DuckDB takes nothing more. Others may be of another file, such as a publication. */
const isFatal = (error: unknown): boolean => messageOf(error).startsWith('FATAL Error');

/** A transaction under way: see `Warehouse.transaction`. */
export class Transaction implements Reader {
  constructor(readonly connection: DuckDBConnection) {}

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return queryRows(this.connection, sql, row, parameters);
  }

  /** Runs a statement whose rows nobody needs. */
  async execute(sql: string, parameters: Parameters = {}): Promise<void> {
    await runStatement(this.connection, sql, parameters);
  }
}
