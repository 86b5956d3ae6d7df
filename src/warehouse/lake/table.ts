import { readFile, writeFile } from 'node:fs/promises';
import pMap from 'p-map';
import { z } from 'zod';
import { codeOf, messageOf, StorageError } from '../../errors.js';
import { ignoreMissing } from '../../files.js';
import { sleepFor } from '../../sleep.js';
import { literal } from '../duckdb.js';
import { queryRows, readSql } from '../query.js';
import {
  type Action,
  actionSchema,
  appIdOf,
  creation,
  isOwn,
  type Lake,
  placeAction,
  retentionChange,
  type TableLog,
  type TableName,
} from './actions.js';
import { expectLatest, expectOwn, expectWritable } from './rights.js';
import { AT_ONCE } from './storage.js';

const CHECKPOINT = readSql(import.meta.url, 'checkpoint.sql');
const COMMITS_PER_CHECKPOINT = 10;
const MAX_ATTEMPTS = 200;
const MAX_PAUSE_MS = 250;
/** How often a file that waits to be put in place may be lost. */
const MAX_LOSSES = 3;

const linesOf = (actions: readonly object[]): string =>
  actions.map((action) => `${JSON.stringify(action)}\n`).join('');

/**
 * One Delta table of a lake: its log, by the protocol at
 * https://github.com/delta-io/delta/blob/master/PROTOCOL.md. A commit is the file of the next
 * version, created only if it does not exist.
 */
export class LakeTable implements TableLog {
  /** The newest version read; -1 if the table does not exist. */
  version = -1;
  readonly state = new Map<string, Action>();

  private constructor(
    readonly lake: Lake,
    readonly name: TableName,
  ) {}

  /** Reads the log of a table. Throws a `StorageError`. */
  static async read(lake: Lake, name: TableName): Promise<LakeTable> {
    const table = new LakeTable(lake, name);
    await table.#readCheckpoint();
    await table.#refresh();
    return table;
  }

  /** Reads new commits. */
  async #refresh(): Promise<void> {
    for (;;) {
      const entry = await this.#entry(this.version + 1);
      if (entry === undefined) return;
      this.#apply(entry.split('\n').filter((line) => line !== ''));
      this.version++;
    }
  }

  /** Creates the table if it does not exist, and says in it how long replaced files are kept. */
  create(): Promise<void> {
    return this.commit(() => (this.version < 0 ? creation(this) : retentionChange(this)));
  }

  /**
   * Commits what `decide` returns for the newest state. If another publisher commits first, decides
   * again. Commits nothing if there are no actions. Throws a `ConfigurationError` if this publisher
   * may not write to the table, and, unless `isClaim`, an `ElsewhereError` if it is not the latest.
   */
  async commit(decide: () => readonly Action[] | Promise<readonly Action[]>, isClaim = false): Promise<void> {
    const { lake } = this;
    const { here, place, now, signal, workspace } = lake;
    const appId = appIdOf(lake);
    const isNumbered = this.name === 'days' && !isClaim;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      signal.throwIfAborted();
      await this.#refresh();
      expectOwn(this);
      expectWritable(this);
      if (isNumbered) expectLatest(this);
      const actions = await decide();
      if (actions.length === 0) return;
      const version = this.version + 1;
      const last = this.state.get(appId)?.txn?.version ?? 0;
      const txn = { appId, version: last + 1, lastUpdated: now.getTime() };
      const commitInfo = { timestamp: now.getTime(), operation: 'WRITE', engineInfo: 'Readership' };
      const publisher = isNumbered && here ? [placeAction(here, workspace.publications, lake)] : [];
      const text = linesOf([{ commitInfo }, ...actions, ...publisher, { txn }]);
      // If there is an entry, it may be this one, and only the reply was lost.
      if ((await this.#put(text, this.#logFile(version), true)) || (await this.#entry(version)) === text) {
        await this.#refresh();
        if (version > 0 && version % COMMITS_PER_CHECKPOINT === 0) await this.#writeCheckpoint();
        return;
      }
      await sleepFor(Math.random() * MAX_PAUSE_MS, signal);
    }
    throw new StorageError(
      `Other publishers of ${place.location}/${this.name} committed first ${MAX_ATTEMPTS} times in a row. Publish again.`,
    );
  }

  /**
   * Removes files that are no longer needed and have not been since `untilMs`: files that a commit
   * replaced, own files that were never committed, and log entries older than the checkpoint from
   * which every state since then can be read.
   */
  async vacuum(untilMs: number): Promise<void> {
    const { existing, storage } = this.lake;
    const { version: keptFrom } = this.#newestCheckpoint(untilMs);
    for (const [whole, modified] of existing) {
      if (!whole.startsWith(`${this.name}/`)) continue;
      const path = whole.slice(this.name.length + 1);
      const [, version] = /^_delta_log\/(\d{20})\./.exec(path) ?? [];
      const { add: live, remove: tombstone } = this.state.get(path) ?? {};
      const goneMs = tombstone ? (tombstone.deletionTimestamp ?? 0) : modified.getTime();
      const isOurs = version !== undefined || tombstone !== undefined || isOwn(path, this.lake);
      const isNeeded = live != null || Number(version) >= keptFrom;
      if (isOurs && !isNeeded && goneMs < untilMs) await storage.remove(whole);
    }
    for (const [path, { remove }] of this.state)
      if (remove && (remove.deletionTimestamp ?? 0) < untilMs) this.state.delete(path);
  }

  /** The newest complete checkpoint that was written before. Another program may have written it in several files. */
  #newestCheckpoint(untilMs = Infinity): { readonly version: number; readonly files: readonly string[] } {
    const form = new RegExp(
      `^${this.name}/_delta_log/(\\d{20})\\.checkpoint(?:\\.\\d{10}\\.(\\d{10}))?\\.parquet$`,
    );
    const checkpoints = new Map<string, string[]>();
    for (const [path, modified] of this.lake.existing) {
      const [, version, parts = '1'] = form.exec(path) ?? [];
      if (version === undefined || modified.getTime() >= untilMs) continue;
      const key = `${version} ${parts}`;
      checkpoints.set(key, [...(checkpoints.get(key) ?? []), path]);
    }
    const complete = [...checkpoints].filter(([key, { length }]) => Number(key.split(' ')[1]) === length);
    const [version = '0', files = []] = complete.sort().at(-1) ?? [];
    return { version: Number.parseInt(version), files };
  }

  #logFile(version: number, end = 'json'): string {
    return `${this.name}/_delta_log/${String(version).padStart(20, '0')}.${end}`;
  }

  async #entry(version: number): Promise<string | undefined> {
    const entry = await this.lake.storage.localCopy(this.#logFile(version));
    return readFile(entry, 'utf8').catch(ignoreMissing);
  }

  async #put(text: string, path: string, ifAbsent = false): Promise<boolean> {
    const { storage } = this.lake;
    for (let attempt = 1; ; attempt++) {
      const file = await storage.stage();
      try {
        await writeFile(file, text);
        return await storage.put(file, path, ifAbsent);
      } catch (error) {
        // Another copy of this workspace stages files in the same directory, which it removes when it is done.
        if (codeOf(error) !== 'ENOENT' || attempt === MAX_LOSSES) throw error;
      }
    }
  }

  #apply(lines: readonly string[]): void {
    try {
      for (const line of lines) {
        const { add, remove, txn, protocol, metaData } = actionSchema.parse(JSON.parse(line));
        if (add) this.state.set(add.path, { add: { ...add, dataChange: false } });
        if (remove) this.state.set(remove.path, { remove: { ...remove, dataChange: false } });
        if (txn) this.state.set(txn.appId, { txn });
        if (protocol) this.state.set('protocol', { protocol });
        if (metaData) this.state.set('metaData', { metaData });
      }
    } catch (cause) {
      throw new StorageError(
        `This version of Readership cannot write the Delta table ${this.lake.place.location}/${this.name}: ${messageOf(cause)}. Nothing was changed. ` +
          `If a newer Readership or another program wrote to it, publish to another location.`,
        { cause },
      );
    }
  }

  async #readCheckpoint(): Promise<void> {
    const { storage, connection } = this.lake;
    const { version, files } = this.#newestCheckpoint();
    if (files.length === 0) return;
    const copies = await pMap(files, (file) => storage.localCopy(file), AT_ONCE);
    const sql = `SELECT to_json(entry)::VARCHAR AS action FROM read_parquet([${copies.map(literal).join()}]) AS entry`;
    const rows = await queryRows(connection, sql, z.object({ action: z.string() }));
    this.#apply(rows.map(({ action }) => action));
    this.version = version;
  }

  /** With a checkpoint, readers need not read every entry. */
  async #writeCheckpoint(): Promise<void> {
    const { version } = this;
    const { storage, connection } = this.lake;
    const [lines, checkpoint] = [await storage.stage(), await storage.stage()];
    await writeFile(lines, linesOf([...this.state.values()]));
    await connection.run(`SET VARIABLE lake_actions = ${literal(lines)}`);
    await connection.run(
      `COPY (${CHECKPOINT}) TO ${literal(checkpoint)} (FORMAT parquet, USE_TMP_FILE false)`,
    );
    await storage.put(checkpoint, this.#logFile(version, 'checkpoint.parquet'));
    await this.#put(
      JSON.stringify({ version, size: this.state.size }),
      `${this.name}/_delta_log/_last_checkpoint`,
    );
  }
}
