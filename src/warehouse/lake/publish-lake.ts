import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { shardName } from '../../config/shard.js';
import { ConfigurationError, ReadershipError } from '../../errors.js';
import { recordLake, workspaceIdOf } from '../identity.js';
import { storageFailure } from '../storage-failure.js';
import type { Warehouse } from '../warehouse.js';
import { creation, type LakeFile, TABLES } from './actions.js';
import { type Month, storedMonths, writeMonth } from './months.js';
import {
  configurationOf,
  expectOwn,
  findOldLake,
  monthNameOf,
  type Publication,
  type Publisher,
} from './ownership.js';
import { openStorage } from './place.js';
import type { LakePlace } from './storage.js';
import { LakeTable } from './table.js';

export interface LakeOptions extends Pick<Publication, 'now' | 'signal'>, Omit<Publisher, 'workspaceId'> {
  readonly place: LakePlace;
}

/** How many files this publisher has in the lake, how many it wrote and replaced, and what went over the network. */
export interface LakeChange {
  readonly files: number;
  readonly written: number;
  readonly replaced: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/**
 * Brings the lake up to date: each table has the files of each month, written again only if a row of the month has
 * changed. Each table changes in one commit, so readers see either state, wherever this ends. A later publish removes
 * what is left over.
 *
 * Throws a `ConfigurationError` when the place is not a lake of this workspace, a `LakeAwayError` when its store does
 * not answer, a `StorageError` when writing fails. What was committed before stays.
 */
export async function publishLake(warehouse: Warehouse, options: LakeOptions): Promise<LakeChange> {
  const { place, shard, source, now, signal } = options;
  const storage = await openStorage(place, shardName(shard), warehouse.path, signal);
  const clear = () => rm(storage.staging, { recursive: true, force: true }).catch(() => undefined);
  try {
    return await warehouse.exclusive(async (connection) => {
      await clear();
      const publisher = { workspaceId: await workspaceIdOf(connection), shard, source };
      const change = await bringUp({ storage, connection, publisher, now, signal }, place.keepReplacedMs);
      await recordLake(connection, place.location);
      return change;
    });
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw storageFailure(`publish the lake ${place.location} (what was committed before stays)`, cause);
  } finally {
    await clear();
  }
}

async function bringUp(work: Publication, keepReplacedMs: number): Promise<LakeChange> {
  const { storage, connection, publisher, now } = work;
  const { location } = storage;
  const months = await storedMonths(connection, publisher.shard);
  const existing = await storage.list();
  const old = await findOldLake(work, existing);
  const tables = TABLES.map((name) => new LakeTable(work, name));
  for (const table of tables) await table.refresh();
  const stranger = [...existing.keys()].find((path) => !path.startsWith('_staged'));
  const isNew = old === undefined && tables.every(({ snapshot }) => snapshot.version < 0);
  if (isNew && stranger !== undefined)
    throw new ConfigurationError(
      `${location} is not a lake: it has ${stranger}. Nothing in it was changed. Name a place that is empty or new.`,
    );
  for (const { snapshot } of tables) expectOwn(location, snapshot, publisher);
  const held = tables.flatMap(({ ownFiles }) => ownFiles).length;
  if (months.length === 0 && held > 0)
    throw new ConfigurationError(
      `The database has no days, and the lake ${location} has ${held} files of this workspace. Nothing in it was changed. ` +
        `Restore the database first: readership restore --from ${location}. To empty the lake, remove it.`,
    );
  // Before any data: from then on, the place is this workspace's.
  for (const table of tables)
    await table.commit(({ version }) =>
      version < 0 ? creation(table.name, randomUUID(), configurationOf(publisher), now) : [],
    );
  const change = { files: 0, written: 0, replaced: 0 };
  for (const table of tables) {
    await table.vacuum(existing, now.getTime() - keepReplacedMs);
    const ofTable = months.filter(({ dataset }) => dataset === table.name);
    const { written, replaced } = await bringUpTable(work, table, ofTable, existing);
    change.files += table.ownFiles.length;
    change.written += written;
    change.replaced += replaced;
  }
  for (const path of old ?? []) await storage.remove(path);
  return { ...change, ...storage.traffic };
}

/** Replaces the months that changed, or of which a file was lost, in one commit. */
async function bringUpTable(
  work: Publication,
  table: LakeTable,
  months: readonly Month[],
  existing: ReadonlyMap<string, Date>,
): Promise<Pick<LakeChange, 'written' | 'replaced'>> {
  const files = table.ownFiles;
  const lost = files.filter(({ path }) => !existing.has(`${table.name}/${path}`));
  const current = new Set(months.map(({ name }) => name));
  for (const { path } of lost) current.delete(monthNameOf(path));
  const replaced = files.filter(({ path }) => !current.has(monthNameOf(path)));
  const kept = new Set(files.map(({ path }) => monthNameOf(path)).filter((name) => current.has(name)));
  const added: LakeFile[] = [];
  for (const month of months) {
    work.signal.throwIfAborted();
    if (!kept.has(month.name)) added.push(...(await writeMonth(work, month)));
  }
  const removal = { extendedFileMetadata: true, deletionTimestamp: work.now.getTime(), dataChange: true };
  // Nothing is left to commit when an earlier attempt was committed, and only its reply was lost.
  await table.commit((snapshot) => [
    ...replaced
      .filter(({ path }) => snapshot.has(path))
      .map(({ path, partitionValues, size }) => ({ remove: { path, partitionValues, size, ...removal } })),
    ...added.filter(({ path }) => !snapshot.has(path)).map((add) => ({ add })),
  ]);
  return { written: added.length, replaced: replaced.length };
}
