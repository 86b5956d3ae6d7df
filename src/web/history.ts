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
  /** Differs when the history was replaced, or what it shows of the state has changed. */
  readonly version: string;
  /** What Readership did and decided, as it is now. */
  readonly state: State;
}

/** A query reads them as the table `range_changes`. With 200,000 pages, they take more than a second. */
const RANGE_CHANGES =
  'FROM changes($from, $to, $days_earlier, months_earlier := $months_earlier, per := $per, project_id := $project)';
/** Those of one range are two tables or three, of about 50 MB with 200,000 pages. */
const RANGE_TABLES = 18;

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
          version: opened.version,
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
    const { answers, history, ranges } = opened;
    // DuckDB simplifies a query for values that it has, not for parameters.
    const changes = sql.includes('range_changes') ? filledIn(RANGE_CHANGES, parameters) : undefined;
    // A sitemap can be among the parameters.
    const key = hashOf(`${changes} ${filledIn(sql, parameters)}`);
    const ask = async () => {
      const create = (table: string) => queryWithin(history, signal, table);
      const table = changes && (await ranges.named(changes, create));
      return queryWithin(history, signal, sql, parameters, table);
    };
    const answer = async () => {
      // Others may have asked the same in the meantime.
      const rows = answers.get(key) ?? (await ask());
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
  // The history itself is read-only.
  await history.connection.run("ATTACH ':memory:' AS kept (READ_WRITE, COMPRESS)");
  const answers = new LRUCache<string, unknown[]>({
    maxSize: ANSWERS_KEPT,
    maxEntrySize: LARGEST_KEPT,
    sizeCalculation: ({ length }) => Math.max(1, length),
  });
  return { version, history, answers, ranges: new RangeTables(), users: 0 };
}

/** The changes of the ranges asked for last. Sorting, searching and filtering the lists of a range read the same table. */
class RangeTables {
  /** Their names by the query that made them; the one that was used last comes last. */
  readonly #names = new Map<string, string>();
  readonly #oneAtATime = pLimit(1);
  #made = 0;

  /** The name of the table with these rows, which `run` makes if there is none. */
  named(rows: string, run: (sql: string) => Promise<unknown>): Promise<string> {
    return this.#oneAtATime(async () => {
      const name = this.#names.get(rows) ?? `kept.rows_${this.#made++}`;
      if (!this.#names.has(rows)) await run(`CREATE TABLE ${name} AS ${rows}`);
      this.#names.delete(rows);
      this.#names.set(rows, name);
      for (const [oldest, dropped] of [...this.#names].slice(0, -RANGE_TABLES)) {
        // A query that is reading it keeps what it reads.
        await run(`DROP TABLE ${dropped}`);
        this.#names.delete(oldest);
      }
      return name;
    });
  }
}

/** Runs a query on its own connection, until it takes too long or nobody waits for it anymore. */
async function queryWithin(
  history: History,
  left: AbortSignal,
  sql: string,
  parameters: Parameters = {},
  rangeChanges?: string,
) {
  const own = await history.beside();
  const late = timeLimit(LONGEST_MS);
  // DuckDB ignores an interruption that comes before the query begins, so one is not enough.
  const watch = setInterval(() => {
    if (left.aborted || late.aborted) own.connection.interrupt();
  }, INTERRUPT_EVERY_MS);
  try {
    if (rangeChanges !== undefined)
      await own.connection.run(`CREATE TEMP VIEW range_changes AS FROM ${rangeChanges}`);
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
