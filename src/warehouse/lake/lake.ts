import type { DuckDBConnection } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { isLocal } from '../../config/values.js';
import { isInShard, shardName } from '../../config/shard.js';
import { ConfigurationError, ReadershipError } from '../../errors.js';
import { recordLake, workspaceIdOf } from '../identity.js';
import { quoted } from '../duckdb.js';
import { storageFailure } from '../../storage.js';
import { queryRows, readSql } from '../query.js';
import type { Warehouse } from '../warehouse.js';
import { fileSchema, type LakeFile, monthNameOf, type Publication, TABLES } from './actions.js';
import { DiskStorage, type LakeStorage } from './storage.js';
import { LakeTable } from './table.js';

const MONTHS = readSql(import.meta.url, 'months.sql');
const WRITTEN = readSql(import.meta.url, 'written.sql');
const PROJECT = z.object({ project: z.string() });
const LAKE_PROJECTS = 'CREATE OR REPLACE TEMP TABLE lake_projects AS';

const monthRow = z.object({
  dataset: z.enum(TABLES),
  month: z.string().regex(/^\d{4}-\d{2}$/),
  /** Prefix of its file names, which changes whenever a row changes. */
  name: z.string(),
});
/** A month of a table as currently stored in the database. */
type Month = z.infer<typeof monthRow>;
const writtenRow = z.object({ file: z.string(), add: fileSchema });

export type LakeOptions = Pick<Publication, 'place' | 'shard' | 'source' | 'now' | 'signal'>;

/** How many files this publisher has in the lake, how many it wrote and replaced, and how much it transferred. */
export type LakeChange = Record<'files' | 'written' | 'replaced', number> & LakeStorage['traffic'];

/**
 * Brings the lake up to date. A month's files are written again only if one of its rows has
 * changed. Each table changes in one commit, so readers see either the old or the new state, even
 * after a crash. A later publish removes leftovers.
 *
 * Throws a `ConfigurationError` if the location is not a lake of this workspace, a `LakeAwayError`
 * if its store does not respond, and a `StorageError` if writing fails. Earlier commits remain.
 */
export async function publishLake(warehouse: Warehouse, options: LakeOptions): Promise<LakeChange> {
  const storage = await openStorage(options, shardName(options.shard), warehouse.path);
  const clear = () => rm(storage.staging, { recursive: true, force: true }).catch(() => undefined);
  try {
    return await warehouse.exclusive(async (connection) => {
      const workspaceId = await workspaceIdOf(connection);
      const work = { ...options, storage, existing: await storage.list(), connection, workspaceId };
      const change = await updateTables(work);
      await recordLake(connection, options.place.location);
      return change;
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

async function updateTables(work: Publication): Promise<LakeChange> {
  const { storage, existing, now } = work;
  const { location, keepReplacedMs } = work.place;
  const months = await storedMonths(work);
  const paths = [...existing.keys()];
  const isLake = paths.some((path) => path.startsWith('views/_delta_log/'));
  const stranger = paths.find((path) => !path.startsWith('_staged'));
  if (!isLake && stranger !== undefined)
    throw new ConfigurationError(
      `${location} is neither empty nor a Readership lake: it contains ${stranger}. Nothing in it was changed. Use an empty or new location.`,
    );
  const tables = TABLES.map((name) => new LakeTable(work, name));
  // Created before any data, to claim the location for this workspace.
  for (const table of tables) await table.create();
  const held = tables.flatMap(({ ownFiles }) => ownFiles).length;
  if (months.length === 0 && held > 0)
    throw new ConfigurationError(
      `The database has no days, and the lake ${location} has ${held} files of this workspace. Nothing in it was changed. ` +
        `Restore the database first: readership restore --from ${location}. To empty the lake, remove it.`,
    );
  const change = { files: 0, written: 0, replaced: 0 };
  for (const table of tables) {
    await table.vacuum(now.getTime() - keepReplacedMs);
    const ofTable = months.filter(({ dataset }) => dataset === table.name);
    const { added, replaced } = await updateTable(work, table, ofTable);
    change.files += table.ownFiles.length;
    change.written += added.length;
    change.replaced += replaced.length;
  }
  return { ...change, ...storage.traffic };
}

/** The months of the shard's projects. Creates the temporary views that `writeMonth` reads. */
async function storedMonths({ connection, shard }: Publication): Promise<Month[]> {
  const stored = await queryRows(connection, 'SELECT DISTINCT project FROM day_loads', PROJECT);
  const projects = stored.flatMap(({ project }) => (isInShard(project, shard) ? quoted(project) : []));
  await connection.run(`${LAKE_PROJECTS} SELECT unnest([${projects.join()}]::VARCHAR[]) AS project`);
  for (const name of TABLES) await connection.run(readSql(import.meta.url, `${name}.sql`));
  return queryRows(connection, MONTHS, monthRow, { publisher: shardName(shard) });
}

/** Replaces the months that changed, or that lost a file, in one commit. */
async function updateTable(work: Publication, table: LakeTable, months: readonly Month[]) {
  const files = table.ownFiles;
  const isWhole = ({ name }: Month): boolean => {
    const ofMonth = files.filter(({ path }) => monthNameOf(path) === name);
    return ofMonth.length > 0 && ofMonth.every(({ path }) => work.existing.has(`${table.name}/${path}`));
  };
  const kept = new Set(months.filter(isWhole).map(({ name }) => name));
  const replaced = files.filter(({ path }) => !kept.has(monthNameOf(path)));
  const added: LakeFile[] = [];
  for (const month of months) {
    work.signal.throwIfAborted();
    if (!kept.has(month.name)) added.push(...(await writeMonth(work, month)));
  }
  const removal = { extendedFileMetadata: true, deletionTimestamp: work.now.getTime(), dataChange: true };
  // Nothing is left to commit if an earlier attempt succeeded and only its reply was lost.
  await table.commit(() => [
    ...replaced
      .filter(({ path }) => table.has(path))
      .map(({ path, partitionValues, size }) => ({ remove: { path, partitionValues, size, ...removal } })),
    ...added.filter(({ path }) => !table.has(path)).map((add) => ({ add })),
  ]);
  return { added, replaced };
}

/** Writes a month, sorted by project, day and path, to files that are not part of the table yet. */
async function writeMonth(work: Publication, { dataset, month, name }: Month): Promise<LakeFile[]> {
  const { storage, connection, now } = work;
  const directory = await storage.stage();
  const first = `DATE '${month}-01'`;
  const rows = `FROM lake_${dataset} WHERE day BETWEEN ${first} AND last_day(${first}) ORDER BY ALL`;
  const form = "FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '200MB'";
  await connection.run(`COPY (${rows}) TO ${quoted(directory)} (${form})`);
  const values = { files: `${directory}/*.parquet`, name, month, time: now.getTime() };
  const written = await queryRows(connection, WRITTEN, writtenRow, values);
  for (const { file, add } of written) await storage.put(file, `${dataset}/${add.path}`);
  return written.map(({ add }) => add);
}

/**
 * Fills an empty, migrated database at `path` with the days of a lake. The database adopts the id
 * of the workspace that wrote them, so that it may publish there. Throws a `ConfigurationError` if
 * the lake has no days of the shard.
 */
export async function fillFromLake(
  connection: DuckDBConnection,
  path: string,
  source: Pick<LakeOptions, 'place' | 'shard' | 'signal'>,
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
      const { owner } = table;
      const files: string[] = [];
      for (const file of table.ownFiles) files.push(quoted(await storage.localCopy(`${name}/${file.path}`)));
      if (owner === undefined || (name === 'days' && files.length === 0))
        throw new ConfigurationError(
          `The lake ${place.location} has no days of ${shard ? `shard ${shardName(shard)}` : 'this workspace'}. Nothing was changed. Check its address, and --shard.`,
        );
      await connection.run(`SET VARIABLE lake_files = [${files.join()}]::VARCHAR[]`);
      if (files.length > 0) await connection.run(readSql(import.meta.url, `restore-${name}.sql`));
      await workspaceIdOf(connection, owner);
      await recordLake(connection, place.location);
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
