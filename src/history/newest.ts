import pLimit from 'p-limit';
import { stampOf } from '../files.js';
import type { Reader } from './duckdb.js';
import { EMPTY_HISTORY, type History, openHistory } from './history.js';
import { expectSchema, isDescribed } from './schema.js';
import type { StateTables } from './state-copy.js';
import { removeForeignLog } from './write.js';

interface NewestOptions {
  readonly path: string;
  /** The tables of the state, as they are now. */
  readonly tables: () => StateTables;
  readonly onWarning?: ((words: string) => void) | undefined;
  /** Called when another program has replaced the history: what was read of the last version is of no use. */
  readonly onReplaced: () => void;
}

/** The newest version of the history, opened when it is needed. Whoever uses it waits for its turn. */
export class NewestVersion {
  readonly #inTurn = pLimit(1);
  #reader: History | undefined;
  #areTablesOld = false;
  /** Whether the views of the version are those of this program; undefined before anybody asked. */
  #isDescribed: boolean | undefined;
  /** What identifies the version that was opened last; undefined before any was. */
  #stamp: { readonly of: string | undefined } | undefined;

  /** Reads it alone: with the tables of the state as of when it was written. */
  readonly file: Reader = {
    query: (sql, row, parameters) => this.reading((history) => history.query(sql, row, parameters)),
  };

  /** Reads it with the tables of the state as they are now. */
  readonly current: Reader = {
    query: (sql, row, parameters) =>
      this.reading(async (history) => {
        if (this.#areTablesOld) await history.show(this.options.tables());
        this.#areTablesOld = false;
        return history.query(sql, row, parameters);
      }),
  };

  constructor(private readonly options: NewestOptions) {}

  /** The tables of the state have changed. */
  refresh(): void {
    this.#areTablesOld = true;
  }

  hasOurViews(): Promise<boolean> {
    return this.reading(async ({ connection }) => (this.#isDescribed ??= await isDescribed(connection)));
  }

  reading<Result>(work: (history: History) => Promise<Result>): Promise<Result> {
    return this.#inTurn(async () => work(await this.#open()));
  }

  /** Runs `work`, which replaces the version that it gets: the one that the file has now. */
  replacing(work: (history: History) => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#stamp?.of !== (await stampOf(this.options.path))) this.#close();
      await work(await this.#open());
      this.#close();
      this.#stamp = { of: await stampOf(this.options.path) };
    });
  }

  close(): Promise<void> {
    return this.#inTurn(() => {
      this.#close();
    });
  }

  async #open(): Promise<History> {
    if (this.#reader !== undefined) return this.#reader;
    const { path, onReplaced, onWarning } = this.options;
    const stamp = await stampOf(path);
    if (this.#stamp !== undefined && this.#stamp.of !== stamp) onReplaced();
    await removeForeignLog(path, onWarning);
    const history = await openHistory(stamp === undefined ? EMPTY_HISTORY : path, {}, expectSchema);
    this.#areTablesOld = true;
    this.#stamp = { of: stamp };
    this.#isDescribed = undefined;
    return (this.#reader = history);
  }

  #close(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }
}
