import type { DuckDBConnection } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isLocal } from '../../config/values.js';
import { shardName } from '../../config/shard.js';
import { max } from 'date-fns';
import { type Act, lakeGone, type Place, placeDigest } from '../../effects/place.js';
import { ConfigurationError, ReadershipError } from '../../errors.js';
import {
  needAct,
  readWorkspaceRow,
  recordLake,
  recordPublications,
  rememberLake,
  workspaceIdOf,
} from '../identity.js';
import { quoted } from '../duckdb.js';
import { storageFailure } from '../../storage.js';
import { readerOf, readSql } from '../query.js';
import type { Warehouse } from '../warehouse.js';
import {
  actAction,
  isForeign,
  type LakeFile,
  type LastAct,
  monthNameOf,
  type Publication,
  publisherActions,
  TABLES,
} from './actions.js';
import {
  inspect,
  type Month,
  nameProjects,
  namesOf,
  remember,
  storedMonths,
  writeMonth,
  writeOthers,
} from './months.js';
import { DiskStorage, type LakeStorage } from './storage.js';
import { LakeTable } from './table.js';

export interface LakeOptions extends Pick<
  Publication,
  'place' | 'shard' | 'source' | 'now' | 'signal' | 'isRebuild'
> {
  /** Where the workspace is; it publishes only if no other copy, and no later state, has. */
  readonly here?: Place | undefined;
}

/** How many files this publisher has in the lake, how many it wrote and replaced, and how much it transferred. */
export type LakeChange = Record<'files' | 'written' | 'replaced', number> &
  LakeStorage['traffic'] & {
    /** The months that another program had changed, and that were written again. */
    readonly rebuilt: readonly string[];
  };

/**
 * Brings the lake up to date. A month's files are written again only if one of its rows has
 * changed, or differs from the database because another program changed it. Each table changes in one commit, so readers see either the old or the new state, even
 * after a crash. A later publish removes leftovers.
 *
 * Throws a `ConfigurationError` if the location is not a lake of this workspace, a `LakeAwayError`
 * if its store does not respond, and a `StorageError` if it is missing or writing fails. Earlier commits remain.
 */
export const publishLake = (warehouse: Warehouse, options: LakeOptions): Promise<LakeChange> =>
  withLake(warehouse, options, async (work) => {
    await work.storage.expectConditions();
    const change = await updateTables(work);
    await recordLake(work.connection, options.place.location);
    return change;
  });

/**
 * Throws an `ElsewhereError` if another copy of the workspace, or a later state of this one, has
 * published to the lake. Creates a new lake, so that what is published from now on, such as the
 * history, knows it.
 */
export const prepareLake = (warehouse: Warehouse, options: LakeOptions): Promise<void> =>
  withLake(warehouse, options, async (work) => {
    const days = await daysOf(work);
    if (days.version >= 0) {
      days.expectLatest();
      return;
    }
    await work.storage.expectConditions();
    await createTables(work);
  });

/**
 * The last claim to send in the lake. Throws an `ElsewhereError` if another copy of the workspace has
 * published there. Writes nothing, so it does not matter whether the store honors conditions.
 */
export const readLastAct = (warehouse: Warehouse, options: LakeOptions): Promise<LastAct | undefined> =>
  withLake(warehouse, options, async (work) => {
    const days = await daysOf(work);
    days.expectOwnPlace();
    return days.lastAct;
  });

/** How a state claims to send: it records the claim after the `last` one, if it knows everything before. */
export interface Claim {
  /** Throws an `ElsewhereError` if it does not. */
  readonly expectKnown: (last: LastAct | undefined) => void;
  readonly record: (connection: DuckDBConnection, last: LastAct | undefined) => Promise<Act>;
}

/**
 * Claims to send, in the lake if it exists. The claim is recorded first: a kill before the commit
 * leaves a state that knows the lake, one after it a state that knows its own claim. Of two copies that claim at the
 * same time, the second finds a claim that it does not know.
 */
export const claimAct = (warehouse: Warehouse, options: LakeOptions, claim: Claim): Promise<void> =>
  withLake(warehouse, options, async (work) => {
    const days = await daysOf(work);
    if (days.version < 0) return;
    claim.expectKnown(days.lastAct);
    const { number } = await claim.record(work.connection, days.lastAct);
    await days.commit(() => {
      days.expectOwnPlace();
      claim.expectKnown(days.lastAct);
      return days.lastAct?.number === number ? [] : [actAction(number, work)];
    }, true);
  });

/**
 * Makes this copy of the workspace the one that publishes to the lake and sends. Returns its claim;
 * undefined if there is no lake yet.
 */
export const claimLake = (
  warehouse: Warehouse,
  options: LakeOptions,
  nextOf: (last: number | undefined) => Act,
): Promise<Act | undefined> =>
  withLake(warehouse, options, async (work) => {
    const { publisher, storage, connection } = work;
    await storage.expectConditions();
    const days = await daysOf(work);
    if (days.version < 0 || publisher === undefined) return undefined;
    let [act, number]: [Act | undefined, number] = [undefined, 0];
    await days.commit(() => {
      const last = days.lastAct?.number;
      if (act !== undefined && last === act.number) return [];
      act = nextOf(last);
      number = Math.max(publisher.number, days.latestPublisher?.number ?? 0) + 1;
      return [
        ...publisherActions({ ...work, publisher: { ...publisher, number } }),
        actAction(act.number, work),
      ];
    }, true);
    await recordPublications(connection, number);
    return act;
  });

/** The table of days. Throws a `StorageError` if the workspace was published there, and now there is nothing. */
async function daysOf(work: Publication): Promise<LakeTable> {
  const days = new LakeTable(work, 'days');
  await days.refresh();
  if (days.version < 0 && work.isKnown === true && work.isRebuild !== true)
    throw lakeGone(work.place.location);
  return days;
}

async function withLake<Result>(
  warehouse: Warehouse,
  { here, ...options }: LakeOptions,
  use: (work: Publication) => Promise<Result>,
): Promise<Result> {
  const storage = await openStorage(options, shardName(options.shard), warehouse.path);
  const clear = () => rm(storage.staging, { recursive: true, force: true }).catch(() => undefined);
  try {
    return await warehouse.exclusive(async (connection) => {
      const workspaceId = await workspaceIdOf(connection);
      const { publications, lakes, act } = await readWorkspaceRow(readerOf(connection));
      const publisher = here && { place: placeDigest(here), number: publications };
      const isKnown = lakes?.includes(options.place.location) === true;
      const existing = await storage.list();
      return use({ ...options, storage, existing, connection, workspaceId, publisher, isKnown, act });
    });
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw storageFailure(
      `publish the lake ${options.place.location} (earlier commits are not affected)`,
      cause,
    );
  } finally {
    await clear();
  }
}

/** Creates the tables that do not exist, before any data, to claim the location for this workspace. */
async function createTables(work: Publication): Promise<LakeTable[]> {
  const { existing, connection } = work;
  const { location } = work.place;
  const paths = [...existing.keys()];
  const isLake = paths.some((path) => path.startsWith('views/_delta_log/'));
  const stranger = paths.find((path) => !path.startsWith('_staged'));
  if (!isLake && stranger !== undefined)
    throw new ConfigurationError(
      `${location} is neither empty nor a Readership lake: it contains ${stranger}. Nothing in it was changed. Use an empty or new location.`,
    );
  if (!isLake) expectReadableName(location);
  await daysOf(work);
  const tables = TABLES.map((name) => new LakeTable(work, name));
  for (const table of tables) await table.create();
  await rememberLake(connection, location);
  return tables;
}

async function updateTables(work: Publication): Promise<LakeChange> {
  const { storage, now } = work;
  const { location, keepReplacedMs } = work.place;
  const months = await storedMonths(work);
  const tables = await createTables(work);
  const held = tables.flatMap(({ files }) => files).length;
  if (months.length === 0 && held > 0)
    throw new ConfigurationError(
      `The database has no days, and the lake ${location} has ${held} files of this workspace. Nothing in it was changed. ` +
        `Restore the database first: readership restore --from ${location}. To empty the lake, remove it.`,
    );
  const change = { files: 0, written: 0, replaced: 0 };
  const rebuilt = new Set<string>();
  for (const table of tables) {
    await table.vacuum(now.getTime() - keepReplacedMs);
    const ofTable = months.filter(({ dataset }) => dataset === table.name);
    const plan = await updateTable(work, table, ofTable);
    change.files += table.files.length;
    change.written += plan.added.length;
    change.replaced += plan.removed.length;
    for (const month of plan.rebuilt) rebuilt.add(month);
  }
  return { ...change, ...storage.traffic, rebuilt: [...rebuilt].sort() };
}

/** Throws a `ConfigurationError` for a new lake whose name some engines read as another, or as a partition. */
function expectReadableName(location: string): void {
  const odd = /[^\w./\\:+,;&@~'()-]/u.exec(location)?.[0];
  if (odd !== undefined)
    throw new ConfigurationError(
      `The lake ${location} was not created: not every program can read a lake whose address contains “${odd}”. ` +
        'Use another place, named with letters, digits, hyphens and underscores.',
    );
}

/** The changes to a table. */
interface Plan {
  readonly added: LakeFile[];
  readonly removed: LakeFile[];
  /** The months that another program had changed. */
  readonly rebuilt: string[];
}

/** Replaces the months that changed, that lost a file, or whose rows another program changed, in one commit. */
async function updateTable(work: Publication, table: LakeTable, months: readonly Month[]): Promise<Plan> {
  const once = new Map<string, Promise<LakeFile[]>>();
  /** A commit that another publisher preempts is planned again, but nothing is written twice. */
  const written = (key: string, write: () => Promise<LakeFile[]>): Promise<LakeFile[]> => {
    const files = once.get(key) ?? write();
    once.set(key, files);
    return files;
  };
  let plan: Plan = { added: [], removed: [], rebuilt: [] };
  let isCommitted = false;
  const removal = { extendedFileMetadata: true, deletionTimestamp: work.now.getTime(), dataChange: true };
  await table.commit(async () => {
    // Nothing is left to commit if an earlier attempt succeeded and only its reply was lost.
    if (isCommitted && plan.added.every(({ path }) => table.has(path))) return [];
    plan = await planTable(work, table, months, written);
    isCommitted = plan.added.length > 0;
    return [
      ...plan.removed.map(({ path, partitionValues, size }) => ({
        remove: { path, partitionValues, size, ...removal },
      })),
      ...plan.added.map((add) => ({ add })),
    ];
  });
  for (const month of months) {
    const names = namesOf(table.files.filter((file) => monthOf(file) === month.month));
    if (names !== month.files) await remember(work, { ...month, files: names });
  }
  return plan;
}

const monthOf = ({ path, partitionValues }: LakeFile): string =>
  partitionValues?.['month'] ?? /^month=([^/]*)/.exec(path)?.[1] ?? '';

async function planTable(
  work: Publication,
  table: LakeTable,
  months: readonly Month[],
  written: (key: string, write: () => Promise<LakeFile[]>) => Promise<LakeFile[]>,
): Promise<Plan> {
  const plan: Plan = { added: [], removed: [], rebuilt: [] };
  const names = new Set([...months.map(({ month }) => month), ...table.files.map(monthOf)]);
  for (const name of names) {
    work.signal.throwIfAborted();
    const month = months.find((one) => one.month === name);
    const files = table.files.filter((file) => monthOf(file) === name);
    const isUntouched = namesOf(files) === month?.files;
    const hasForeign = files.some(({ path }) => isForeign(path));
    const isWhole = files.every(
      ({ path }) => monthNameOf(path) === month?.name && work.existing.has(`${table.name}/${path}`),
    );
    if (!hasForeign && isWhole && files.length > 0 === (month !== undefined) && work.isRebuild !== true)
      continue;
    const found = hasForeign ? await inspect(work, table.name, files, month?.digest ?? '') : undefined;
    if (found?.isSame === true && work.isRebuild !== true) continue;
    const removed = found?.holding ?? files;
    if (removed.length === 0 && month === undefined) continue;
    plan.removed.push(...removed);
    const others = removed.filter(({ path }) => isForeign(path));
    const key = `${name} ${namesOf(others)}`;
    plan.added.push(...(await written(key, () => writeOthers(work, table.name, name, others))));
    if (month) plan.added.push(...(await written(month.name, () => writeMonth(work, month))));
    if (hasForeign || (month?.files != null && !isUntouched)) plan.rebuilt.push(name);
  }
  return plan;
}

/**
 * Fills an empty, migrated database at `path` with the days of a lake. The database adopts the id
 * of the workspace that wrote them, so that it may publish there. Throws a `ConfigurationError` if
 * the lake has no days of the shard.
 */
export async function fillFromLake(
  connection: DuckDBConnection,
  path: string,
  { here, ...source }: Pick<LakeOptions, 'place' | 'shard' | 'signal' | 'here'>,
): Promise<void> {
  const { place, shard } = source;
  const storage = await openStorage(source, `restore-${shardName(shard)}`, path);
  try {
    const existing = await storage.list();
    const nobody = { workspaceId: '', source: '', now: new Date(0) };
    const reader = { ...source, ...nobody, storage, existing, connection };
    for (const name of TABLES) {
      const table = new LakeTable(reader, name);
      await table.refresh();
      const { owner, latestPublisher: latest, lastAct } = table;
      const files: string[] = [];
      for (const { path } of table.files)
        files.push(quoted(await storage.localCopy(`${name}/${decodeURIComponent(path)}`)));
      const list = `[${files.join()}]::VARCHAR[]`;
      if (files.length > 0) await nameProjects(reader, `read_parquet(${list})`);
      if (owner === undefined || (name === 'days' && files.length === 0))
        throw new ConfigurationError(
          `The lake ${place.location} has no days of ${shard ? `shard ${shardName(shard)}` : 'this workspace'}. Nothing was changed. Check its address, and --shard.`,
        );
      await connection.run(`SET VARIABLE lake_files = ${list}`);
      if (files.length > 0) await connection.run(readSql(import.meta.url, `restore-${name}.sql`));
      await workspaceIdOf(connection, owner);
      await recordLake(connection, place.location);
      await rememberLake(connection, place.location);
      if (latest !== undefined) await recordPublications(connection, latest.number);
      // Another place may have sent something, even if it did not say so there.
      const other = here && latest && latest.place !== placeDigest(here) ? { number: 1, at: latest.at } : [];
      const known = [lastAct ?? [], other].flat();
      if (known.length > 0)
        await needAct(
          connection,
          Math.max(...known.map(({ number }) => number)),
          max(known.map(({ at }) => at)),
        );
    }
  } finally {
    await rm(storage.staging, { recursive: true, force: true });
  }
}

/** The storage of a lake, for `publisher`. Files for a bucket are staged next to the database. */
async function openStorage(
  { place, signal }: Pick<LakeOptions, 'place' | 'signal'>,
  publisher: string,
  database: string,
): Promise<LakeStorage> {
  if (isLocal(place.location))
    return new DiskStorage(place.location, join(place.location, '_staged', publisher));
  // The client warns that later versions need Node 22. The pinned version runs on Node 20.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
  // Loaded on demand, because it is slow to load and rarely needed.
  const { BucketStorage } = await import('./bucket.js');
  return new BucketStorage(place, join(dirname(database), 'lake-upload'), signal);
}
