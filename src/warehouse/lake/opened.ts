import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isLocal } from '../../config/values.js';
import { shardName } from '../../config/shard.js';
import { lakeGone, type Place, placeDigest } from '../../effects/place.js';
import { ReadershipError } from '../../errors.js';
import { storageFailure } from '../../storage.js';
import { readWorkspaceRow, workspaceIdOf } from '../identity.js';
import { readerOf } from '../query.js';
import type { Warehouse } from '../warehouse.js';
import type { Publication } from './actions.js';
import { DiskStorage, type LakeStorage } from './storage.js';
import { LakeTable } from './table.js';

export interface LakeOptions extends Pick<
  Publication,
  'place' | 'shard' | 'source' | 'now' | 'signal' | 'isRebuild'
> {
  /** Where the workspace is; it publishes only if no other copy, and no later state, has. */
  readonly here?: Place | undefined;
}

/** Runs `use` with the lake, while nothing else uses the database. */
export async function withLake<Result>(
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

/** The table of days. Throws a `StorageError` if the workspace was published there, and now there is nothing. */
export async function daysOf(work: Publication): Promise<LakeTable> {
  const days = new LakeTable(work, 'days');
  await days.refresh();
  if (days.version < 0 && work.isKnown === true && work.isRebuild !== true)
    throw lakeGone(work.place.location);
  return days;
}

/** The storage of a lake, for `publisher`. Files for a bucket are staged next to the database. */
export async function openStorage(
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
