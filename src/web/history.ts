import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import pLimit from 'p-limit';
import { z } from 'zod';
import { withState } from '../app/state.js';
import type { Workspace } from '../app/workspace.js';
import type { State } from '../state/state.js';
import { StorageError } from '../errors.js';
import { timeLimit } from '../sleep.js';
import { queryLimits } from '../sql/limits.js';
import { type History, openOwnHistory } from '../history/history.js';
import type { DaysReader } from '../export/ledger.js';
import { stampOf } from '../files.js';
import { readStoredDays } from '../history/days.js';
import { readTables } from '../state/copies.js';
import { filledIn, type Parameters, parseRows, type Reader } from '../history/query.js';
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
  /** As `query`, for a query that reads answers of macros as tables. */
  queryKept<Row>(
    reads: readonly KeptAnswer[],
    sql: string,
    row: z.ZodType<Row>,
    parameters: Parameters,
  ): Promise<Row[]>;
}

/**
 * The macros that most of the time of pages goes into, for one project, by the name of the table as which queries read
 * their answers.
 */
const KEPT = {
  page_changes: "changes($from, $to, $shift, per := 'page', project_id := $project)",
  site_changes: "changes($from, $to, $shift, per := 'site', project_id := $project)",
  /** Per page, section or site. */
  changes_per: 'changes($from, $to, $shift, per := $per, project_id := $project)',
  moved_pages: 'movers($week, project_id := $project)',
};
export type KeptAnswer = keyof typeof KEPT;

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
        const query: Reader['query'] = (...asked) => this.#ask(opened, asker, [], ...asked);
        return await work({
          version: `${opened.version} ${opened.shown}`,
          state,
          query,
          storedDays: (project) => readStoredDays({ query }, project),
          queryKept: (reads, ...asked) => this.#ask(opened, asker, reads, ...asked),
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

  /** The newest version, which shows the state as it is now. */
  async #current(state: State): Promise<Opened> {
    const version = (await stampOf(this.workspace.historyFile).catch(() => undefined)) ?? '';
    if (this.#opened?.version !== version) {
      const before = this.#opened;
      this.#opened = await openVersion(this.workspace, version);
      if (before?.users === 0) before.history.close();
    }
    const opened = this.#opened;
    // Pages read the runs in the state itself.
    const tables = { ...readTables(state), runs: '[]' };
    const shown = createHash('sha256').update(JSON.stringify(tables)).digest('base64');
    if (shown === opened.shown) return opened;
    await opened.history.show(tables);
    opened.shown = shown;
    opened.answers.clear();
    opened.kept.clear();
    return opened;
  }

  async #ask<Row>(
    { history, answers, kept }: Opened,
    { client, signal }: Asker,
    reads: readonly KeptAnswer[],
    sql: string,
    row: z.ZodType<Row>,
    parameters: Parameters = {},
  ): Promise<Row[]> {
    // A sitemap can be among the parameters.
    const asked = filledIn([...reads.map((name) => KEPT[name]), sql].join('\n'), parameters);
    const key = createHash('sha256').update(asked).digest('base64');
    const answerOf = async () => {
      const run = (text: string) => queryWithin(history, signal, text);
      const tables = await Promise.all(
        reads.map(async (name) => [name, await kept.tableOf(KEPT[name], parameters, run)] as const),
      );
      return queryWithin(history, signal, sql, parameters, tables);
    };
    const answer = async () => {
      // Others may have asked the same in the meantime.
      const rows = answers.get(key) ?? (await answerOf());
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

type Opened = Awaited<ReturnType<typeof openVersion>>;

/** Opens one version of the history, which never changes, so its answers can be kept as long as the state stays the same. */
async function openVersion({ historyFile }: Workspace, version: string) {
  const history = await openOwnHistory(historyFile, {
    memory_limit: `${queryLimits().maxMemory}B`,
    allocator_bulk_deallocation_flush_threshold: FREED_AT_ONCE,
  });
  // The history itself is read-only.
  await history.connection.run("ATTACH ':memory:' AS kept (READ_WRITE, COMPRESS)");
  const answers = new LRUCache<string, unknown[]>({
    maxSize: ANSWERS_KEPT,
    maxEntrySize: LARGEST_KEPT,
    sizeCalculation: ({ length }) => Math.max(1, length),
  });
  return { version, history, answers, kept: new KeptAnswers(), shown: '', users: 0 };
}

/** A range has two or three, of which that of its pages is large: about 50 MB for 200,000 pages. */
const MOST_KEPT = 18;

/**
 * The changes of the ranges that were asked for last, and the pages that moved, in tables of one opened history. Sorting,
 * searching and filtering a list, the lists of one page, and the sections read the same ones.
 */
class KeptAnswers {
  /** Their names by the query that made them; the one that was used last comes last. */
  readonly #tables = new Map<string, string>();
  readonly #oneAtATime = pLimit(1);
  #made = 0;

  /** Makes them again when they are asked for. Those that are in use are dropped as others take their place. */
  clear(): void {
    for (const [rows, table] of [...this.#tables]) {
      this.#tables.delete(rows);
      this.#tables.set(`old ${table}`, table);
    }
  }

  /** The table with the answer of a macro for a project, which `run` makes if there is none. */
  tableOf(macro: string, parameters: Parameters, run: (sql: string) => Promise<unknown>): Promise<string> {
    // DuckDB simplifies a query for values that it has, not for parameters.
    const rows = filledIn(`FROM ${macro}`, parameters);
    return this.#oneAtATime(() => this.#use(rows, run));
  }

  async #use(rows: string, run: (sql: string) => Promise<unknown>): Promise<string> {
    const table = this.#tables.get(rows) ?? `kept.rows_${this.#made++}`;
    if (!this.#tables.has(rows)) await run(`CREATE TABLE ${table} AS ${rows}`);
    this.#tables.delete(rows);
    this.#tables.set(rows, table);
    for (const [oldest, dropped] of [...this.#tables].slice(0, -MOST_KEPT)) {
      // A query that is reading it keeps what it reads.
      await run(`DROP TABLE ${dropped}`);
      this.#tables.delete(oldest);
    }
    return table;
  }
}

/** Runs a query on its own connection, until it takes too long or nobody waits for it anymore. */
async function queryWithin(
  history: History,
  left: AbortSignal,
  sql: string,
  parameters: Parameters = {},
  tables: readonly (readonly [KeptAnswer, string])[] = [],
) {
  const own = await history.beside();
  const late = timeLimit(LONGEST_MS);
  // DuckDB ignores an interruption that comes before the query begins, so one is not enough.
  const watch = setInterval(() => {
    if (left.aborted || late.aborted) own.connection.interrupt();
  }, INTERRUPT_EVERY_MS);
  try {
    for (const [name, table] of tables) await own.connection.run(`CREATE TEMP VIEW ${name} AS FROM ${table}`);
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
