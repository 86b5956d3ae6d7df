import { chmod, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { isLocal } from '../../config/values.js';
import { messageOf, StorageError } from '../../errors.js';
import { moment } from '../../format/days.js';
import { exists, ignoreMissing, READ_ONLY } from '../../files.js';
import { changeDatabase, removeDatabase } from '../live-file.js';
import { migrate } from '../migrate.js';
import { makeDirectory } from '../open.js';
import { fillFromLake, stateOfLake } from './fill.js';
import type { LakeOptions } from './opened.js';

const COPY = /^lake-copy-[\da-f]{16}\.duckdb$/;

/**
 * The days of a shard in a lake as a history in `directory`, which is dated when the shard published them. It is
 * replaced when the shard's files in the lake have changed. If the lake cannot be read, or only with credentials that
 * this command does not read, the last copy is used, and `onStale` is told. Throws a `ReadershipError` if there is none.
 */
export async function copyOfLake(
  directory: string,
  source: Pick<LakeOptions, 'place' | 'shard' | 'signal'>,
  hasCredentials: boolean,
  onStale: (words: string) => void,
): Promise<string> {
  const { location } = source.place;
  const names = ((await readdir(directory).catch(ignoreMissing)) ?? []).filter((name) => COPY.test(name));
  const [last] = names.map((name) => join(directory, name));
  try {
    if (!isLocal(location) && !hasCredentials)
      throw new StorageError(
        `This command reads no credentials for ${location}. Copy it with: readership status`,
      );
    const { digest, publishedAt } = await stateOfLake(join(directory, 'lake-copy'), source);
    const copy = join(directory, `lake-copy-${digest.slice(0, 16)}.duckdb`);
    if (await exists(copy)) return copy;
    await makeDirectory(directory);
    const unfinished = `${copy}.${process.pid}`;
    await changeDatabase(unfinished, async (connection) => {
      await migrate(connection, unfinished);
      await fillFromLake(connection, unfinished, source);
    }).catch(async (error: unknown) => {
      await removeDatabase(unfinished);
      throw error;
    });
    await chmod(unfinished, READ_ONLY);
    if (publishedAt !== undefined) await utimes(unfinished, publishedAt, publishedAt);
    await rename(unfinished, copy);
    for (const name of names) await rm(join(directory, name), { force: true });
    return copy;
  } catch (error) {
    if (last === undefined || source.signal.aborted) throw error;
    onStale(
      `${last} is as of ${moment((await stat(last)).mtime)}, and could not be brought up to date: ${messageOf(error)}`,
    );
    return last;
  }
}
