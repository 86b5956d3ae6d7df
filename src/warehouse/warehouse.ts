import type { DuckDBConnection } from '@duckdb/node-api';
import pLimit from 'p-limit';
import { z } from 'zod';
import { type Parameters, queryRows, type Reader } from './query.js';

/**
 * The live database, open for writing. One connection serves everything, so transactions take turns: while one is
 * under way, what others ask waits.
 */
export class Warehouse implements Reader {
  readonly #inTurn = pLimit(1);

  constructor(
    readonly path: string,
    private readonly connection: DuckDBConnection,
    private readonly release: () => Promise<void>,
  ) {}

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return this.#inTurn(() => queryRows(this.connection, sql, row, parameters));
  }

  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it throws. `work` must use the
   * `Transaction` it is handed; asking the warehouse itself from inside would wait for ever.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#inTurn(async () => {
      await this.connection.run('BEGIN');
      try {
        const result = await work(new Transaction(this.connection));
        await this.connection.run('COMMIT');
        return result;
      } catch (error) {
        await this.connection.run('ROLLBACK');
        throw error;
      }
    });
  }

  /** For work that must not be inside a transaction, such as CHECKPOINT and ATTACH. */
  exclusive<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    return this.#inTurn(() => work(this.connection));
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

  /** Waits for what is under way, folds the log into the file, and lets go of it. */
  close(): Promise<void> {
    return this.#inTurn(async () => {
      try {
        await this.connection.run('CHECKPOINT');
      } finally {
        await this.release();
      }
    });
  }
}

const unread = z.unknown();

/** A transaction under way: see `Warehouse.transaction`. */
export class Transaction implements Reader {
  constructor(readonly connection: DuckDBConnection) {}

  query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    return queryRows(this.connection, sql, row, parameters);
  }

  /** Runs a statement whose rows nobody needs. */
  async execute(sql: string, parameters?: Parameters): Promise<void> {
    await queryRows(this.connection, sql, unread, parameters);
  }
}
