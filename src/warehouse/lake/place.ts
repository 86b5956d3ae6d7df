import { DiskStorage } from './disk.js';
import type { LakePlace, LakeStorage } from './storage.js';

/** The storage of a lake, for `publisher`. */
export function openStorage(place: LakePlace, publisher: string): LakeStorage {
  return new DiskStorage(place.location, publisher);
}
