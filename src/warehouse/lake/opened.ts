import type { DuckDBConnection } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isLocal } from '../../config/values.js';
import { type Shard, shardName, shardOption } from '../../config/shard.js';
import { lakeGone } from '../../effects/place.js';
import { ReadershipError } from '../../errors.js';
import { storageFailure } from '../../storage.js';
import { NO_WORKSPACE, readWorkspaceRow, workspaceIdOf } from '../identity.js';
import { readerOf, readSql } from '../query.js';
import type { Warehouse } from '../warehouse.js';
import type { Lake, LakeOptions } from './actions.js';
import { DiskStorage, type LakeStorage } from './storage.js';
import { LakeTable } from './table.js';

/** Runs `use` with the lake, while nothing else uses the database. */
export async function withLake<Result>(
  warehouse: Warehouse,
  options: LakeOptions,
  use: (lake: Lake) => Promise<Result>,
): Promise<Result> {
  try {
    return await warehouse.exclusive(async (connection) => {
      await workspaceIdOf(connection);
      const workspace = await readWorkspaceRow(readerOf(connection));
      const staging = shardName(options.shard);
      return openLake(connection, warehouse.path, staging, { ...options, workspace }, use);
    });
  } catch (cause) {
    if (cause instanceof ReadershipError) throw cause;
    throw storageFailure(
      `publish the lake ${options.place.location} (earlier commits are not affected)`,
      cause,
    );
  }
}

/** How a lake is read: for a shard, as it is now. */
export type LakeSource = Pick<LakeOptions, 'place' | 'shard' | 'signal' | 'here'>;

/** Runs `use` with a lake to read. Files of a bucket are kept next to `path` meanwhile. */
export function readLake<Result>(
  connection: DuckDBConnection,
  path: string,
  source: LakeSource,
  use: (lake: Lake) => Promise<Result>,
): Promise<Result> {
  const nobody = { workspace: NO_WORKSPACE, source: '', now: new Date(0) };
  return openLake(connection, path, `restore-${shardName(source.shard)}`, { ...source, ...nobody }, use);
}

async function openLake<Result>(
  connection: DuckDBConnection,
  database: string,
  staging: string,
  options: Omit<Lake, 'storage' | 'existing' | 'connection'>,
  use: (lake: Lake) => Promise<Result>,
): Promise<Result> {
  const storage = await openStorage(options, staging, database);
  try {
    const existing = await storage.list();
    await nameShard(connection, options.shard);
    return await use({ ...options, storage, existing, connection });
  } finally {
    await rm(storage.staging, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Creates the temporary macro that finds the projects of a shard. */
export async function nameShard(connection: DuckDBConnection, shard: Shard | undefined): Promise<void> {
  const { index, count } = shard ?? { index: 1, count: 1 };
  await connection.run(`SET VARIABLE shard = ${index}; SET VARIABLE shards = ${count}`);
  await connection.run(readSql(import.meta.url, 'is-in-shard.sql'));
}

/** The table of days. Throws a `StorageError` if the workspace was published there, and now there is nothing. */
export async function daysOf(lake: Lake): Promise<LakeTable> {
  const { place, shard, workspace, isRebuild } = lake;
  const days = await LakeTable.read(lake, 'days');
  if (days.version < 0 && workspace.lakes?.includes(place.location) === true && isRebuild !== true)
    throw lakeGone(place.location, shardOption(shard));
  return days;
}

/** The storage of a lake, with a directory for files that are not in place yet; next to the database for a bucket. */
async function openStorage(
  { place, signal }: Pick<LakeOptions, 'place' | 'signal'>,
  staging: string,
  database: string,
): Promise<LakeStorage> {
  if (isLocal(place.location))
    return new DiskStorage(place.location, join(place.location, '_staged', staging));
  // The client warns that later versions need Node 22. The pinned version runs on Node 20.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
  // Loaded on demand, because it is slow to load and rarely needed.
  const { BucketStorage } = await import('./bucket.js');
  return new BucketStorage(place, join(dirname(database), 'lake-upload'), signal);
}
