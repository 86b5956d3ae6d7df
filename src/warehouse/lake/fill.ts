import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { max } from 'date-fns';
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { formatShard, shardName } from '../../config/shard.js';
import { placeDigest } from '../../effects/place.js';
import { ConfigurationError } from '../../errors.js';
import { quoted } from '../duckdb.js';
import { needAct, recordLake, recordPublications, rememberLake, workspaceIdOf } from '../identity.js';
import { readSql } from '../query.js';
import { type Publication, TABLES } from './actions.js';
import { nameProjects } from './months.js';
import { type LakeOptions, openStorage } from './opened.js';
import { LakeTable } from './table.js';

/**
 * Fills an empty, migrated database at `path` with the days of a lake. The database adopts the id
 * of the workspace that wrote them, so that it may publish there. Throws a `ConfigurationError` if
 * the lake has no days of the shard.
 */
export async function fillFromLake(
  connection: DuckDBConnection,
  path: string,
  { here, ...source }: Source & Pick<LakeOptions, 'here'>,
): Promise<void> {
  const { place, shard } = source;
  await withTables(connection, path, source, async (tables, reader) => {
    const { storage } = reader;
    for (const table of tables) {
      const { name, owner, latestPublisher: latest, lastAct } = table;
      const files: string[] = [];
      for (const { path } of table.files)
        files.push(quoted(await storage.localCopy(`${name}/${decodeURIComponent(path)}`)));
      const list = `[${files.join()}]::VARCHAR[]`;
      if (files.length > 0) await nameProjects(reader, `read_parquet(${list})`);
      if (owner === undefined || (name === 'days' && files.length === 0))
        throw new ConfigurationError(
          `The lake ${place.location} has no days of ${shard ? `shard ${formatShard(shard)}` : 'this workspace'}. Nothing was changed. Check its address, and --shard.`,
        );
      await connection.run(`SET VARIABLE lake_files = ${list}`);
      if (files.length > 0) await connection.run(readSql(import.meta.url, `restore-${name}.sql`));
      await workspaceIdOf(connection, owner);
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
    await recordLake(connection, place.location);
    await rememberLake(connection, place.location);
  });
}

type Source = Pick<LakeOptions, 'place' | 'shard' | 'signal'>;

/** Reads the tables of a lake for a shard, as they are now. Files of a bucket are kept next to `path` meanwhile. */
async function withTables<Result>(
  connection: DuckDBConnection,
  path: string,
  source: Source,
  work: (tables: readonly LakeTable[], reader: Publication) => Promise<Result>,
): Promise<Result> {
  const storage = await openStorage(source, `restore-${shardName(source.shard)}`, path);
  try {
    const existing = await storage.list();
    const nobody = { workspaceId: '', source: '', now: new Date(0) };
    const reader = { ...source, ...nobody, storage, existing, connection };
    const tables = TABLES.map((name) => new LakeTable(reader, name));
    for (const table of tables) await table.refresh();
    return await work(tables, reader);
  } finally {
    await rm(storage.staging, { recursive: true, force: true });
  }
}

/** What a shard has published to a lake: a digest of its files, and when that was. */
export async function stateOfLake(path: string, source: Source) {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return await withTables(connection, path, source, (tables) => {
      const files = tables.flatMap((table) => table.files.map((file) => `${table.name}/${file.path}`));
      const digest = createHash('sha256').update(files.sort().join('\n')).digest('hex');
      return Promise.resolve({
        digest,
        publishedAt: tables.find(({ name }) => name === 'days')?.latestPublisher?.at,
      });
    });
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
