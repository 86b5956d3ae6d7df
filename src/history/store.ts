import type { DuckDBConnection } from '@duckdb/node-api';
import type { z } from 'zod';
import type { Day } from '../day.js';
import { messageOf, StorageError } from '../errors.js';
import { exists } from '../files.js';
import { applyChanges, type LoadedDay, WaitingDays, type DayToStore } from './changes.js';
import {
  type DayCounts,
  expectExact,
  PathIds,
  type ProjectPaths,
  readCountsOfDay,
  readStoredDays,
  type StoredDay,
  type StoredDays,
} from './days.js';
import { literal, type Parameters, type Reader, readerOf, withConnection } from './duckdb.js';
import { EMPTY_HISTORY } from './history.js';
import { isToRewrite, removeForeignLog, writeNext } from './write.js';
import {
  type CarriedState,
  isAtLeastAsNew,
  readStateSummary,
  type StateSummary,
  type StateTables,
  storeState,
  storeTables,
} from './state-copy.js';
import { describe } from './schema.js';
import { NewestVersion } from './newest.js';

/** Days that are read wait so long to be written, or until they have so many rows. */
const WRITE_AFTER_MS = 60_000;
const MOST_WAITING_ROWS = 2_000_000;

export interface StoreOptions {
  readonly path: string;
  /** The tables of the state, as they are now. */
  readonly tables: () => StateTables;
  /** A copy of the state, as it is now. */
  readonly state: () => CarriedState;
  /** Throws if another process has become the worker. */
  readonly expectCurrent: () => void;
  /** Reads the next version before it takes the place of the last one: opening it again would take longer. */
  readonly onWriting?: ((next: Reader) => Promise<void>) | undefined;
  /** Called once days are in the history. */
  readonly onWritten: (days: readonly LoadedDay[]) => Promise<void>;
  readonly onWarning?: (words: string) => void;
  /** By default, about a minute. */
  readonly writeAfterMs?: number | undefined;
}

/**
 * The history as the worker uses it: it reads the newest version, collects the days that are read, and writes them with
 * the next version about once a minute, and when it is asked to.
 */
export class HistoryStore implements Reader {
  readonly #newest: NewestVersion;
  readonly #days = new Map<string, Promise<Map<Day, StoredDay>>>();
  #ids: PathIds = this.#newIds();
  #waiting = new WaitingDays();
  #timer: NodeJS.Timeout | undefined;
  #failure: Error | undefined;
  /** What the state that the history carries knows, once it was read or written. */
  #carried: { readonly summary: StateSummary | undefined } | undefined;

  constructor(private readonly options: StoreOptions) {
    this.#newest = new NewestVersion({ ...options, onReplaced: () => this.#forget() });
  }

  get path(): string {
    return this.options.path;
  }

  /** Reads the newest version, with the days that were read and the current tables of the state. */
  async query<Row>(sql: string, row: z.ZodType<Row>, parameters?: Parameters): Promise<Row[]> {
    if (this.#waiting.days.size > 0 || !(await this.#newest.hasOurViews())) await this.write();
    return this.#newest.current.query(sql, row, parameters);
  }

  /** Reads the newest version alone: with the tables of the state as of when it was written. */
  get file(): Reader {
    return this.#newest.file;
  }

  /** The tables of the state have changed. */
  refresh(): void {
    this.#newest.refresh();
  }

  /** The stored days of a project, with those that are not written yet. */
  storedDays(project: string): Promise<StoredDays> {
    return this.#daysOf(project);
  }

  /** The paths of a project, whose ids its rows have. */
  pathsOf(project: string): Promise<ProjectPaths> {
    return this.#ids.of(project);
  }

  /** The rows of a day. */
  async countsOfDay(project: string, day: Day): Promise<DayCounts> {
    const waiting = this.#waiting.days.get(keyOf(project, day))?.counts;
    if (waiting !== undefined) return waiting;
    const paths = await this.pathsOf(project);
    return { paths, ...(await this.#newest.reading((history) => readCountsOfDay(history, project, day))) };
  }

  /** Collects a day. It is in the history after the next `write`. */
  async put({ project, stored, counts, restatement }: DayToStore): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (counts !== undefined) expectExact(counts);
    const days = await this.#daysOf(project);
    if (counts !== undefined && counts.paths !== (await this.pathsOf(project))) throw this.#replaced();
    const key = keyOf(project, stored.day);
    const waiting = this.#waiting;
    const before = waiting.days.get(key);
    const isNew = before?.isNew ?? !days.has(stored.day);
    waiting.days.set(key, { project, stored, counts: counts ?? before?.counts, isNew });
    if (restatement !== undefined) waiting.restatements.push(restatement);
    days.set(stored.day, stored);
    waiting.rows += counts?.ids.length ?? 0;
    if (waiting.rows >= MOST_WAITING_ROWS) return this.write();
    this.#timer ??= setTimeout(() => {
      // The next day that is read, or the end, reports it.
      this.write().catch((error: unknown) => {
        this.#failure = error instanceof Error ? error : new Error(messageOf(error));
      });
    }, this.options.writeAfterMs ?? WRITE_AFTER_MS);
  }

  /** Writes the next version of the history if days wait. */
  async writeWaiting(): Promise<void> {
    if (this.#waiting.days.size > 0) await this.write();
  }

  /** Writes a history without days if there is none yet. */
  async create(): Promise<void> {
    if (!(await exists(this.options.path))) await this.write();
  }

  /** Writes the next version of the history: with the days that wait, the tables of the state, and the state itself. */
  async write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { path, tables, state, expectCurrent, onWarning, onWriting, onWritten } = this.options;
    let days: readonly LoadedDay[] = [];
    await this.#newest.replacing(async ({ connection }) => {
      const loaded = [...this.#waiting.days.values()].map(({ stored }) => stored.day);
      const isRewritten = await isToRewrite(connection, loaded);
      const saved = state();
      const carried = await readStateSummary(connection);
      const isKept = !isAtLeastAsNew(path, saved, carried);
      // Days may have been read meanwhile. What is taken from here on, without waiting, is what is written.
      const waiting = this.#waiting;
      this.#waiting = new WaitingDays();
      days = [...waiting.days.values()];
      const added = this.#ids.take(days.flatMap(({ counts }) => counts?.ids ?? []));
      const change = async (next: DuckDBConnection) => {
        await describe(next);
        await applyChanges(next, { days, restatements: waiting.restatements, ...added });
        await storeTables(next, tables());
        // One that knows more attempts is for `restore`.
        if (!isKept) await storeState(next, saved);
        await onWriting?.(readerOf(next));
      };
      const version = { change, isRewritten, beforeRename: expectCurrent, onWarning };
      await writeNext(path, version).catch((error: unknown) => {
        // They are still to be written, but for days that were read again meanwhile.
        this.#waiting = waiting.with(this.#waiting);
        this.#ids.putBack(added);
        throw error;
      });
      const { workspace, attempt, changes } = saved;
      this.#carried = { summary: isKept ? carried : { workspace, attempt, changes } };
    });
    this.#failure = undefined;
    await onWritten(days);
  }

  /** What the state that the history carries knows; undefined if there is none. */
  async carried(): Promise<StateSummary | undefined> {
    const read = () => this.#newest.reading(({ connection }) => readStateSummary(connection));
    this.#carried ??= { summary: await read() };
    return this.#carried.summary;
  }

  /** Runs `work` on a connection to the newest version that may write files. */
  async writingFiles<Result>(work: (connection: DuckDBConnection) => Promise<Result>): Promise<Result> {
    await this.writeWaiting();
    const path = (await exists(this.options.path)) ? this.options.path : EMPTY_HISTORY;
    await removeForeignLog(path, this.options.onWarning);
    return withConnection(async (connection) => {
      await connection.run(`ATTACH ${literal(path)} AS history (READ_ONLY)`);
      await connection.run('USE history');
      return work(connection);
    });
  }

  /** Closes the files. What waits is not written. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#carried = undefined;
    await this.#newest.close();
  }

  #daysOf(project: string): Promise<Map<Day, StoredDay>> {
    const read = () => this.#newest.reading((history) => readStoredDays(history, project));
    const known = this.#days.get(project) ?? read();
    this.#days.set(project, known);
    return known;
  }

  /** Another program has replaced the history: what was read of the last one is of no use. */
  #forget(): void {
    if (this.#waiting.days.size > 0) throw this.#replaced();
    this.#days.clear();
    this.#carried = undefined;
    this.#ids = this.#newIds();
  }

  #replaced(): StorageError {
    return new StorageError(
      `Another program has replaced the history ${this.options.path} meanwhile. Nothing was changed. Run the command again.`,
    );
  }

  #newIds(): PathIds {
    return new PathIds((work) => this.#newest.reading(work));
  }
}

const keyOf = (project: string, day: Day): string => `${day} ${project}`;
