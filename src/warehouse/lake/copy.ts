import type { DuckDBConnection } from '@duckdb/node-api';
import { max } from 'date-fns';
import { createHash } from 'node:crypto';
import { chmod, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import pMap from 'p-map';
import { formatShard } from '../../config/shard.js';
import { isLocal } from '../../config/values.js';
import { placeDigest } from '../../effects/place.js';
import { ConfigurationError, messageOf, StorageError } from '../../errors.js';
import { exists, ignoreMissing, READ_ONLY } from '../../files.js';
import { moment } from '../../format/days.js';
import { literal } from '../duckdb.js';
import { rememberLake, setWorkspace, workspaceIdOf } from '../identity.js';
import { changeDatabase, removeDatabase } from '../live-file.js';
import { migrate } from '../migrate.js';
import { makeDirectory } from '../open.js';
import { readSql } from '../query.js';
import { filesOf, lastClaim, latestPublication, pathInLake, TABLES } from './actions.js';
import { type LakeSource, readLake } from './opened.js';
import { ownerOf } from './rights.js';
import { AT_ONCE } from './storage.js';
import { LakeTable } from './table.js';

/**
 * Fills an empty database at `path` with the days of a lake. The database adopts the id of the workspace that wrote
 * them, so that it may publish there. Throws a `ConfigurationError` if the lake has no days of the shard.
 */
export async function fillFromLake(
  connection: DuckDBConnection,
  path: string,
  source: LakeSource,
): Promise<void> {
  const { place, shard } = source;
  await migrate(connection, path);
  await readLake(connection, path, source, async (lake) => {
    for (const name of TABLES) {
      const table = await LakeTable.read(lake, name);
      const files = filesOf(table);
      const owner = table.version < 0 ? undefined : ownerOf(table);
      if (owner === undefined || (name === 'days' && files.length === 0))
        throw new ConfigurationError(
          `The lake ${place.location} has no days of ${shard ? `shard ${formatShard(shard)}` : 'this workspace'}. Nothing was changed. Check its address, and --shard.`,
        );
      const copies = await pMap(files, (file) => lake.storage.localCopy(pathInLake(name, file)), AT_ONCE);
      await connection.run(`SET VARIABLE lake_files = [${copies.map(literal).join()}]::VARCHAR[]`);
      if (files.length > 0) await connection.run(readSql(import.meta.url, `restore-${name}.sql`));
      await workspaceIdOf(connection, owner);
      if (name === 'days') await recordLake(connection, table, source);
    }
  });
}

/** Records that a database has the days of a lake, and which claim it has to know before it sends. */
async function recordLake(
  connection: DuckDBConnection,
  days: LakeTable,
  { here, place }: LakeSource,
): Promise<void> {
  const latest = latestPublication(days);
  // Another place may have sent something, even if it did not say so there.
  const isOther = here !== undefined && latest !== undefined && latest.end !== placeDigest(here);
  const known = [lastClaim(days) ?? [], isOther ? { number: 1, at: latest.at } : []].flat();
  await setWorkspace(connection, {
    lake: place.location,
    publications: latest?.number ?? 0,
    claim_needed: Math.max(0, ...known.map(({ number }) => number)),
    claim_needed_at: known.length === 0 ? null : max(known.map(({ at }) => at)),
  });
  await rememberLake(connection, place.location);
}

const COPY = /^lake-copy-[\da-f]{16}\.duckdb$/;

/**
 * The days of a shard in a lake as a history in `directory`, which is dated when the shard published them. It is
 * replaced when the shard's files in the lake have changed. If the lake cannot be read, or only with credentials that
 * this command does not read, the last copy is used, and `onStale` is told. Throws a `ReadershipError` if there is none.
 */
export async function copyOfLake(
  directory: string,
  source: LakeSource,
  hasCredentials: boolean,
  onStale: (words: string) => void,
): Promise<string> {
  const { location } = source.place;
  const names = ((await readdir(directory).catch(ignoreMissing)) ?? []).filter((name) => COPY.test(name));
  const [last] = names.map((name) => join(directory, name));
  const unfinished = join(directory, `lake-copy.${process.pid}`);
  try {
    if (!isLocal(location) && !hasCredentials)
      throw new StorageError(
        `This command reads no credentials for ${location}. Copy it with: readership status`,
      );
    const { digest, publishedAt } = await stateOfLake(join(directory, 'lake-copy'), source);
    const copy = join(directory, `lake-copy-${digest.slice(0, 16)}.duckdb`);
    if (await exists(copy)) return copy;
    await makeDirectory(directory);
    await changeDatabase(unfinished, (connection) => fillFromLake(connection, unfinished, source));
    await chmod(unfinished, READ_ONLY);
    if (publishedAt !== undefined) await utimes(unfinished, publishedAt, publishedAt);
    await rename(unfinished, copy);
    for (const name of names) await rm(join(directory, name), { force: true });
    return copy;
  } catch (error) {
    await removeDatabase(unfinished).catch(() => undefined);
    if (last === undefined || source.signal.aborted) throw error;
    const since = moment((await stat(last)).mtime);
    onStale(`${last} is as of ${since}, and could not be brought up to date: ${messageOf(error)}`);
    return last;
  }
}

/** What a shard has published to a lake: a digest of its files, and when that was. Files of a bucket are kept next to `path`. */
const stateOfLake = (path: string, source: LakeSource) =>
  changeDatabase(':memory:', (connection) =>
    readLake(connection, path, source, async (lake) => {
      const [views, days] = [await LakeTable.read(lake, 'views'), await LakeTable.read(lake, 'days')];
      const files = [views, days].flatMap((of) => filesOf(of).map(({ path }) => `${of.name}/${path}`));
      const digest = createHash('sha256').update(files.sort().join('\n')).digest('hex');
      return { digest, publishedAt: latestPublication(days)?.at };
    }),
  );
