import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError, messageOf, StorageError } from '../../errors.js';
import { sleepFor } from '../../sleep.js';
import { quoted } from '../instance.js';
import { queryRows, readSql } from '../query.js';
import { type Action, actionSchema, type LakeFile, Snapshot, type TableName } from './actions.js';
import { appIdOf, expectOwn, isOwn, type Publication } from './ownership.js';

const CHECKPOINT = readSql(import.meta.url, 'checkpoint.sql');
const COMMITS_PER_CHECKPOINT = 10;
const MAX_ATTEMPTS = 200;
const MAX_PAUSE_MS = 250;

const pointerSchema = z.object({ version: z.int() });
const checkpointRow = z.object({ action: z.string() });
const linesOf = (actions: readonly object[]): string =>
  actions.map((action) => `${JSON.stringify(action)}\n`).join('');

/**
 * One Delta table of a lake: its log, by the protocol at https://github.com/delta-io/delta/blob/master/PROTOCOL.md.
 * A commit is the file of the next version, made only if nobody else has made it.
 */
export class LakeTable {
  readonly snapshot = new Snapshot();
  /** The version of the newest checkpoint; 0 when there is none. */
  #checkpoint = 0;

  constructor(
    private readonly work: Publication,
    readonly name: TableName,
  ) {}

  /** The files of this publisher. */
  get ownFiles(): LakeFile[] {
    return this.snapshot.files.filter(({ path }) => isOwn(path, this.work.publisher));
  }

  /** Reads what was committed since the last time, starting with the newest checkpoint. Throws a `StorageError`. */
  async refresh(): Promise<void> {
    const { snapshot, work } = this;
    if (snapshot.version < 0) await this.#readCheckpoint();
    let text: string | undefined;
    while ((text = await work.storage.read(this.#entry(snapshot.version + 1))) !== undefined) {
      this.#apply(text.split('\n').filter((line) => line !== ''));
      snapshot.version++;
    }
  }

  /**
   * Commits what `decide` returns for the newest state. When another publisher commits first, decides again. Commits
   * nothing when there are no actions. Throws a `ConfigurationError` when the table is not this publisher's to write.
   */
  async commit(decide: (snapshot: Snapshot) => readonly Action[]): Promise<void> {
    const { snapshot } = this;
    const { storage, publisher, now, signal } = this.work;
    const appId = appIdOf(publisher);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      signal.throwIfAborted();
      await this.refresh();
      expectOwn(storage.location, snapshot, publisher);
      const actions = decide(snapshot);
      if (actions.length === 0) return;
      const version = snapshot.version + 1;
      const timestamp = now.getTime();
      const commitInfo = { timestamp, operation: 'WRITE', engineInfo: 'Readership' };
      const last = snapshot.latest.get(appId)?.txn?.version ?? 0;
      const txn = { appId, version: last + 1, lastUpdated: timestamp };
      const text = linesOf([{ commitInfo }, ...actions, { txn }]);
      if (await storage.putIfAbsent(this.#entry(version), text)) {
        // Some stores ignore the condition. Making the first entry twice does no harm.
        if (version === 0 && (await storage.putIfAbsent(this.#entry(0), text)))
          throw new ConfigurationError(
            `${storage.location}: the store ignores If-None-Match: *, so two publishers could overwrite each other. ` +
              `Use a store that has conditional writes, or a disk.`,
          );
        await this.refresh();
        if (version > 0 && version % COMMITS_PER_CHECKPOINT === 0) await this.#writeCheckpoint();
        return;
      }
      await sleepFor(Math.random() * MAX_PAUSE_MS, signal);
    }
    throw new StorageError(
      `Other publishers of ${storage.location}/${this.name} committed first, ${MAX_ATTEMPTS} times. Publish again.`,
    );
  }

  /**
   * Removes those of the existing files that nobody needs: own data files that a commit replaced, or that a publish
   * wrote and never committed, and entries of the log that a checkpoint replaced; all only if that was before `untilMs`.
   */
  async vacuum(existing: ReadonlyMap<string, Date>, untilMs: number): Promise<void> {
    const { name, snapshot } = this;
    for (const [whole, modified] of existing) {
      if (!whole.startsWith(`${name}/`)) continue;
      const path = whole.slice(name.length + 1);
      const { remove } = snapshot.latest.get(path) ?? {};
      const [, version] = /^_delta_log\/(\d{20})\./.exec(path) ?? [];
      const isNeeded =
        version === undefined
          ? snapshot.has(path) || !isOwn(path, this.work.publisher)
          : Number(version) >= this.#checkpoint;
      const goneMs = remove?.deletionTimestamp ?? modified.getTime();
      if (!isNeeded && goneMs < untilMs) await this.work.storage.remove(whole);
    }
    for (const [path, { remove }] of snapshot.latest)
      if (remove && (remove.deletionTimestamp ?? 0) < untilMs) snapshot.latest.delete(path);
  }

  #entry(version: number, end = 'json'): string {
    return `${this.name}/_delta_log/${String(version).padStart(20, '0')}.${end}`;
  }

  #apply(lines: readonly string[]): void {
    try {
      for (const line of lines) this.snapshot.apply(actionSchema.parse(JSON.parse(line)));
    } catch (cause) {
      throw new StorageError(
        `This version of Readership cannot write the Delta table ${this.work.storage.location}/${this.name}: ${messageOf(cause)}. Nothing was changed. ` +
          `If a newer Readership or another program wrote to it, publish to another place.`,
        { cause },
      );
    }
  }

  async #readCheckpoint(): Promise<void> {
    const { storage, connection } = this.work;
    const pointer = await storage.read(`${this.name}/_delta_log/_last_checkpoint`);
    if (pointer === undefined) return;
    const { version } = pointerSchema.parse(JSON.parse(pointer));
    const file = await storage.localCopy(this.#entry(version, 'checkpoint.parquet'));
    const sql = `SELECT to_json(entry)::VARCHAR AS action FROM read_parquet(${quoted(file)}) AS entry`;
    this.#apply((await queryRows(connection, sql, checkpointRow)).map(({ action }) => action));
    this.snapshot.version = this.#checkpoint = version;
  }

  /** So that readers need not read every entry there ever was. */
  async #writeCheckpoint(): Promise<void> {
    const { storage, connection } = this.work;
    const { latest, version } = this.snapshot;
    const staged = join(storage.staging, this.name);
    await mkdir(storage.staging, { recursive: true });
    await writeFile(`${staged}.json`, linesOf([...latest.values()]));
    await connection.run(`SET VARIABLE lake_actions = ${quoted(`${staged}.json`)}`);
    await connection.run(
      `COPY (${CHECKPOINT}) TO ${quoted(`${staged}.parquet`)} (FORMAT parquet, USE_TMP_FILE false)`,
    );
    await storage.put(`${staged}.parquet`, this.#entry(version, 'checkpoint.parquet'));
    await writeFile(`${staged}.json`, JSON.stringify({ version, size: latest.size }));
    await storage.put(`${staged}.json`, `${this.name}/_delta_log/_last_checkpoint`);
    this.#checkpoint = version;
  }
}
