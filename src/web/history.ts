import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import pLimit from 'p-limit';
import { z } from 'zod';
import { expectHistory, withState } from '../app/state.js';
import type { Workspace } from '../app/workspace.js';
import type { State } from '../state/state.js';
import { StorageError } from '../errors.js';
import { timeLimit } from '../sleep.js';
import { queryLimits } from '../sql/limits.js';
import { type History, openOwnHistory } from '../history/history.js';
import type { DaysReader } from '../export/day-records.js';
import { stampOf } from '../files.js';
import { readStoredDays } from '../history/days.js';
import type { StateTables } from '../history/state-copy.js';
import { readTables } from '../state/copies.js';
import { filledIn, type Parameters, parseRows, type Reader } from '../history/duckdb.js';
import { Turns } from './limits.js';

/** Who asks: `signal` aborts when they no longer wait, and clients take turns. */
export interface Asker {
  readonly client: string;
  readonly signal: AbortSignal;
}

/** One version of the history, and the state. */
export interface HistoryReader extends Reader, DaysReader {
  /** What Readership did and decided, as it is now. */
  readonly state: State;
}

/** In rows, of which an answer with none counts as one. */
const ANSWERS_KEPT = 20_000;
/** Such as the days of 13 years. */
const LARGEST_KEPT = 5_000;
/** DuckDB would keep most of the memory that queries no longer use. */
const FREED_AT_ONCE = '1MB';
const AT_ONCE = 4;
const AT_ONCE_OF_ONE = 3;
const WAITING_OF_ONE = 64;
const LONGEST_MS = 20_000;
const INTERRUPT_EVERY_MS = 50;

/** Runs the queries of pages on the newest history, which is opened when it has been replaced. */
export class WebHistory {
  #opened: Opened | undefined;
  readonly #opening = pLimit(1);
  readonly #turns = new Turns(AT_ONCE, AT_ONCE_OF_ONE, WAITING_OF_ONE);

  constructor(private readonly workspace: Workspace) {}

  /**
   * Does some work with one version of the history, which stays open until the work is done. Its
   * queries end when whoever asks for them no longer waits.
   */
  async with<Result>(asker: Asker, work: (reader: HistoryReader) => Promise<Result>): Promise<Result> {
    // A page asks several queries, which all end with it.
    setMaxListeners(0, asker.signal);
    return withState(this.workspace, async (state) => {
      const opened = await this.#opening(() => this.#current(state));
      opened.users += 1;
      try {
        const query: Reader['query'] = (...asked) => this.#ask(opened, asker, ...asked);
        return await work({
          state,
          query,
          storedDays: (project) => readStoredDays({ query }, project),
        });
      } finally {
        opened.users -= 1;
        if (opened !== this.#opened && opened.users === 0) opened.history.close();
      }
    });
  }

  close(): void {
    if (this.#opened?.users === 0) this.#opened.history.close();
    this.#opened = undefined;
  }

  /** The newest version, with the state as it is now. */
  async #current(state: State): Promise<Opened> {
    const stamp = (await stampOf(this.workspace.historyFile)) ?? '';
    // Pages read the runs in the state itself.
    const tables = { ...readTables(state), runs: '[]' };
    const version = `${stamp} ${hashOf(JSON.stringify(tables))}`;
    if (this.#opened?.version !== version) {
      await expectHistory(this.workspace, state);
      const before = this.#opened;
      this.#opened = await openVersion(this.workspace, version, tables);
      if (before?.users === 0) before.history.close();
    }
    return this.#opened;
  }

  async #ask<Row>(
    opened: Opened,
    { client, signal }: Asker,
    sql: string,
    row: z.ZodType<Row>,
    parameters: Parameters = {},
  ): Promise<Row[]> {
    const { answers, history } = opened;
    // A sitemap can be among the parameters.
    const key = hashOf(filledIn(sql, parameters));
    const answer = async () => {
      // Others may have asked the same in the meantime.
      const rows = answers.get(key) ?? (await queryWithin(history, signal, sql, parameters));
      answers.set(key, rows);
      return rows;
    };
    const rows = answers.get(key) ?? (await this.#turns.run(client, signal, answer));
    const chunks = Array.from({ length: Math.ceil(rows.length / LARGEST_KEPT) }, (_, at) =>
      rows.slice(at * LARGEST_KEPT, (at + 1) * LARGEST_KEPT),
    );
    return parseRows(chunks, row);
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

type Opened = Awaited<ReturnType<typeof openVersion>>;

/** Opens one version of the history with one of the state. Neither changes, so answers can be kept while it is open. */
async function openVersion({ historyFile }: Workspace, version: string, tables: StateTables) {
  const history = await openOwnHistory(historyFile, {
    memory_limit: `${queryLimits().maxMemory}B`,
    allocator_bulk_deallocation_flush_threshold: FREED_AT_ONCE,
  });
  await history.show(tables);
  const answers = new LRUCache<string, unknown[]>({
    maxSize: ANSWERS_KEPT,
    maxEntrySize: LARGEST_KEPT,
    sizeCalculation: ({ length }) => Math.max(1, length),
  });
  return { version, history, answers, users: 0 };
}

/** Runs a query on its own connection, until it takes too long or nobody waits for it anymore. */
async function queryWithin(history: History, left: AbortSignal, sql: string, parameters: Parameters) {
  const own = await history.beside();
  const late = timeLimit(LONGEST_MS);
  // DuckDB ignores an interruption that comes before the query begins, so one is not enough.
  const watch = setInterval(() => {
    if (left.aborted || late.aborted) own.connection.interrupt();
  }, INTERRUPT_EVERY_MS);
  try {
    return await own.query(sql, z.unknown(), parameters);
  } catch (cause) {
    left.throwIfAborted();
    if (!late.aborted) throw cause;
    throw new StorageError('This page takes too long. Choose a shorter range.', { cause });
  } finally {
    clearInterval(watch);
    own.close();
  }
}
