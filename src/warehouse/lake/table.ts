import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { codeOf, messageOf, StorageError } from '../../errors.js';
import { ignoreMissing } from '../../files.js';
import { sleepFor } from '../../sleep.js';
import { quoted } from '../duckdb.js';
import { queryRows, readSql } from '../query.js';
import {
  type Action,
  actionSchema,
  appIdOf,
  creation,
  isForeign,
  isOwn,
  lastAct,
  type LakeFile,
  latestPublisher,
  type Publication,
  publisherActions,
  retentionChange,
  type TableName,
} from './actions.js';
import { expectLatest, expectOwn, expectOwnPlace, expectWritable, ownerOf } from './rights.js';

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
export class LakeTable {
  /** The newest version read; -1 if the table does not exist. */
  version = -1;
  readonly state = new Map<string, Action>();

  constructor(
    private readonly work: Publication,
    readonly name: TableName,
  ) {}

  /** The files of this publisher, and those that another program wrote, which may hold its rows. */
  get files(): LakeFile[] {
    const isRelevant = (path: string) => isOwn(path, this.work) || isForeign(path);
    return [...this.state.values()].flatMap(({ add }) => (add && isRelevant(add.path) ? add : []));
  }

  /** The id of the workspace that publishes as this shard; undefined before its first publish. */
  get owner(): string | undefined {
    return this.version < 0 ? undefined : ownerOf(this.state, this.work);
  }

  /** The latest publisher of this shard of the workspace. */
  get latestPublisher(): ReturnType<typeof latestPublisher> {
    return latestPublisher(this.state, this.work);
  }

  /** The last claim to send; undefined before the first. */
  get lastAct(): ReturnType<typeof lastAct> {
    return lastAct(this.state, this.work);
  }

  /** Throws an `ElsewhereError` if this publisher is not the latest, which the table of days knows. */
  expectLatest(): void {
    if (this.name === 'days') expectLatest(this.state, this.work);
  }

  /** Throws an `ElsewhereError` if another copy has published. */
  expectOwnPlace(): void {
    expectOwnPlace(this.state, this.work);
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

  /** Creates the table if it does not exist, and says in it how long replaced files are kept. */
  create(): Promise<void> {
    return this.commit(() =>
      this.version < 0 ? creation(this.name, this.work) : retentionChange(this.state, this.work),
    );
  }

  /**
   * Commits what `decide` returns for the newest state. If another publisher commits first, decides
   * again. Commits nothing if there are no actions. Throws a `ConfigurationError` if this publisher
   * may not write to the table, and, unless `isClaim`, an `ElsewhereError` if it is not the latest.
   */
  async commit(decide: () => readonly Action[] | Promise<readonly Action[]>, isClaim = false): Promise<void> {
    const { place, now, signal } = this.work;
    const appId = appIdOf(this.work);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      signal.throwIfAborted();
      await this.refresh();
      expectOwn(this.state, this.work);
      expectWritable(this.name, this.state, this.work);
      if (!isClaim) this.expectLatest();
      const actions = await decide();
      if (actions.length === 0) return;
      const version = this.version + 1;
      const last = this.state.get(appId)?.txn?.version ?? 0;
      const txn = { appId, version: last + 1, lastUpdated: now.getTime() };
      const commitInfo = { timestamp: now.getTime(), operation: 'WRITE', engineInfo: 'Readership' };
      const publisher = isClaim || this.name !== 'days' ? [] : publisherActions(this.work);
      const text = linesOf([{ commitInfo }, ...actions, ...publisher, { txn }]);
      if (await this.#put(text, this.#logFile(version), true)) {
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
   * Removes files that are no longer needed and have not been since `untilMs`: files that a commit
   * replaced, own files that were never committed, and log entries older than the checkpoint from
   * which every state since then can be read.
   */
  async vacuum(untilMs: number): Promise<void> {
    const { existing, storage } = this.work;
    const old = [...this.#checkpoints()].filter(([, { modifiedMs }]) => modifiedMs < untilMs);
    const keptFrom = Math.max(0, ...old.map(([version]) => version));
    for (const [whole, modified] of existing) {
      if (!whole.startsWith(`${this.name}/`)) continue;
      const path = whole.slice(this.name.length + 1);
      const [, version] = /^_delta_log\/(\d{20})\./.exec(path) ?? [];
      const tombstone = this.state.get(path)?.remove;
      const goneMs = tombstone ? (tombstone.deletionTimestamp ?? 0) : modified.getTime();
      const isOurs = version !== undefined || tombstone !== undefined || isOwn(path, this.work);
      const isNeeded = this.has(path) || Number(version) >= keptFrom;
      if (isOurs && !isNeeded && goneMs < untilMs) await storage.remove(whole);
    }
    for (const [path, { remove }] of this.state)
      if (remove && (remove.deletionTimestamp ?? 0) < untilMs) this.state.delete(path);
  }

  /** The complete checkpoints by version. Another program may have written one in several files. */
  #checkpoints(): Map<number, { files: string[]; modifiedMs: number }> {
    const form = new RegExp(
      `^${this.name}/_delta_log/(\\d{20})\\.checkpoint(?:\\.\\d{10}\\.(\\d{10}))?\\.parquet$`,
    );
    const found = new Map<number, { files: string[]; modifiedMs: number }>();
    const counts = new Map<number, number>();
    for (const [path, modified] of this.work.existing) {
      const [, name, parts = '1'] = form.exec(path) ?? [];
      if (name === undefined) continue;
      const version = Number(name);
      const { files = [], modifiedMs = 0 } = (parts === '1' ? undefined : found.get(version)) ?? {};
      found.set(version, { files: [...files, path], modifiedMs: Math.max(modifiedMs, modified.getTime()) });
      counts.set(version, Number(parts));
    }
    return new Map([...found].filter(([version, { files }]) => files.length === counts.get(version)));
  }

  #logFile(version: number, end = 'json'): string {
    return `${this.name}/_delta_log/${String(version).padStart(20, '0')}.${end}`;
  }

  async #put(text: string, path: string, ifAbsent = false): Promise<boolean> {
    const { storage } = this.work;
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
        `This version of Readership cannot write the Delta table ${this.work.place.location}/${this.name}: ${messageOf(cause)}. Nothing was changed. ` +
          `If a newer Readership or another program wrote to it, publish to another location.`,
        { cause },
      );
    }
  }

  async #readCheckpoint(): Promise<void> {
    const { storage, connection } = this.work;
    const [newest] = [...this.#checkpoints()].sort(([one], [other]) => other - one);
    if (newest === undefined) return;
    const [version, { files }] = newest;
    const copies: string[] = [];
    for (const file of files) copies.push(quoted(await storage.localCopy(file)));
    const sql = `SELECT to_json(entry)::VARCHAR AS action FROM read_parquet([${copies.join()}]) AS entry`;
    const rows = await queryRows(connection, sql, z.object({ action: z.string() }));
    this.#apply(rows.map(({ action }) => action));
    this.version = version;
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
  }
}
