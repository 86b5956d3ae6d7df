import { dirname, join } from 'node:path';
import { DiskStorage } from './disk.js';
import type { LakePlace, LakeStorage } from './storage.js';

export const isBucket = (location: string): boolean => location.startsWith('s3://');

/** The storage of a lake, for `publisher`. Files for a bucket are staged beside the database. */
export async function openStorage(
  place: LakePlace,
  publisher: string,
  database: string,
  signal: AbortSignal,
): Promise<LakeStorage> {
  if (!isBucket(place.location)) return new DiskStorage(place.location, publisher);
  // The client warns that later versions need Node 22. The pinned version runs on Node 20.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
  // It takes long to load, and few need it.
  const { BucketStorage } = await import('./bucket.js');
  return new BucketStorage(place, join(dirname(database), 'lake-upload'), signal);
}
