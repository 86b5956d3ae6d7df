import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { ConfigurationError, messageOf, StorageError } from '../../errors.js';
import { ignoreMissing } from '../../files.js';
import { sleepFor } from '../../sleep.js';
import { quoted } from '../duckdb.js';
import { queryRows, readSql } from '../query.js';
import {
  type Action,
  actionSchema,
  appIdOf,
  creation,
  expectOwn,
  isOwn,
  type LakeFile,
  ownerOf,
  type Publication,
  type TableName,
} from './actions.js';
import { OTHER_STORE } from './storage.js';

const CHECKPOINT = readSql(import.meta.url, 'checkpoint.sql');
const COMMITS_PER_CHECKPOINT = 10;
const MAX_ATTEMPTS = 200;
const MAX_PAUSE_MS = 250;

const linesOf = (actions: readonly object[]): string =>
  actions.map((action) => `${JSON.stringify(action)}\n`).join('');

/**
 * One Delta table of a lake: its log, by the protocol at
 * https://github.com/delta-io/delta/blob/master/PROTOCOL.md. A commit is the file of the next
 * version, created only if it does not exist.
 */
export class LakeTable {
  /** The newest version read; -1 if the table does not exist. */
  version = -1;
  readonly state = new Map<string, Action>();
  /** The version of the newest checkpoint; 0 if there is none. */
  #checkpoint = 0;

  constructor(
    private readonly work: Publication,
    readonly name: TableName,
  ) {}

  /** The files of this publisher. */
  get ownFiles(): LakeFile[] {
    return [...this.state.values()].flatMap(({ add }) => (add && isOwn(add.path, this.work) ? add : []));
  }

  /** The id of the workspace that publishes as this shard; undefined before its first publish. */
  get owner(): string | undefined {
    return this.version < 0 ? undefined : ownerOf(this.state, this.work);
  }

  /** Whether a file is part of the table. */
  has(path: string): boolean {
    return this.state.get(path)?.add !== undefined;
  }

  /** Reads new commits, starting with the newest checkpoint. Throws a `StorageError`. */
  async refresh(): Promise<void> {
    if (this.version < 0) await this.#readCheckpoint();
    for (;;) {
      const entry = await this.work.storage.localCopy(this.#logFile(this.version + 1));
      const text = await readFile(entry, 'utf8').catch(ignoreMissing);
      if (text === undefined) return;
      this.#apply(text.split('\n').filter((line) => line !== ''));
      this.version++;
    }
  }

  /** Creates the table if it does not exist. */
  create(): Promise<void> {
    const { source, now } = this.work;
    return this.commit(() => (this.version < 0 ? creation(this.name, source, now) : []));
  }

  /**
   * Commits what `decide` returns for the newest state. If another publisher commits first, decides
   * again. Commits nothing if there are no actions. Throws a `ConfigurationError` if this publisher
   * may not write to the table.
   */
  async commit(decide: () => readonly Action[]): Promise<void> {
    const { place, now, signal } = this.work;
    const appId = appIdOf(this.work);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      signal.throwIfAborted();
      await this.refresh();
      expectOwn(this.state, this.work);
      const actions = decide();
      if (actions.length === 0) return;
      const version = this.version + 1;
      const last = this.state.get(appId)?.txn?.version ?? 0;
      const txn = { appId, version: last + 1, lastUpdated: now.getTime() };
      const commitInfo = { timestamp: now.getTime(), operation: 'WRITE', engineInfo: 'Readership' };
      const text = linesOf([{ commitInfo }, ...actions, { txn }]);
      if (await this.#put(text, this.#logFile(version), true)) {
        // Some stores ignore the condition. Sending the first entry twice is harmless and reveals that.
        if (version === 0 && (await this.#put(text, this.#logFile(0), true)))
          throw new ConfigurationError(`${place.location} ignores If-None-Match: *. ${OTHER_STORE}`);
        await this.refresh();
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
   * Removes files that are no longer needed and have not been since `untilMs`: own data files that
   * a commit replaced or that a publish wrote but never committed, and log entries that a
   * checkpoint replaced.
   */
  async vacuum(untilMs: number): Promise<void> {
    for (const [whole, modified] of this.work.existing) {
      if (!whole.startsWith(`${this.name}/`)) continue;
      const path = whole.slice(this.name.length + 1);
      const [, version] = /^_delta_log\/(\d{20})\./.exec(path) ?? [];
      const isOther = version === undefined && !isOwn(path, this.work);
      const isNeeded = this.has(path) || Number(version) >= this.#checkpoint;
      const goneMs = this.state.get(path)?.remove?.deletionTimestamp ?? modified.getTime();
      if (!isOther && !isNeeded && goneMs < untilMs) await this.work.storage.remove(whole);
    }
    for (const [path, { remove }] of this.state)
      if (remove && (remove.deletionTimestamp ?? 0) < untilMs) this.state.delete(path);
  }

  #logFile(version: number, end = 'json'): string {
    return `${this.name}/_delta_log/${String(version).padStart(20, '0')}.${end}`;
  }

  async #put(text: string, path: string, ifAbsent = false): Promise<boolean> {
    const file = await this.work.storage.stage();
    await writeFile(file, text);
    return this.work.storage.put(file, path, ifAbsent);
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
        `This version of Readership cannot write the Delta table ${this.work.place.location}/${this.name}: ${messageOf(cause)}. Nothing was changed. ` +
          `If a newer Readership or another program wrote to it, publish to another location.`,
        { cause },
      );
    }
  }

  async #readCheckpoint(): Promise<void> {
    const { storage, connection, existing } = this.work;
    const form = new RegExp(`^${this.name}/_delta_log/(\\d{20})\\.checkpoint\\.parquet$`);
    const newest = [...existing.keys()]
      .filter((path) => form.test(path))
      .sort()
      .pop();
    if (newest === undefined) return;
    const file = quoted(await storage.localCopy(newest));
    const sql = `SELECT to_json(entry)::VARCHAR AS action FROM read_parquet(${file}) AS entry`;
    const rows = await queryRows(connection, sql, z.object({ action: z.string() }));
    this.#apply(rows.map(({ action }) => action));
    this.version = this.#checkpoint = Number(form.exec(newest)?.[1]);
  }

  /** With a checkpoint, readers need not read every entry. */
  async #writeCheckpoint(): Promise<void> {
    const { version } = this;
    const { storage, connection } = this.work;
    const [lines, checkpoint] = [await storage.stage(), await storage.stage()];
    await writeFile(lines, linesOf([...this.state.values()]));
    await connection.run(`SET VARIABLE lake_actions = ${quoted(lines)}`);
    await connection.run(
      `COPY (${CHECKPOINT}) TO ${quoted(checkpoint)} (FORMAT parquet, USE_TMP_FILE false)`,
    );
    await storage.put(checkpoint, this.#logFile(version, 'checkpoint.parquet'));
    await this.#put(
      JSON.stringify({ version, size: this.state.size }),
      `${this.name}/_delta_log/_last_checkpoint`,
    );
    this.#checkpoint = version;
  }
}
