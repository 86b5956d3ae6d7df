import type { DuckDBConnection } from '@duckdb/node-api';
import { max } from 'date-fns';
import { rm } from 'node:fs/promises';
import { shardName } from '../../config/shard.js';
import { placeDigest } from '../../effects/place.js';
import { ConfigurationError } from '../../errors.js';
import { quoted } from '../duckdb.js';
import { needAct, recordLake, recordPublications, rememberLake, workspaceIdOf } from '../identity.js';
import { readSql } from '../query.js';
import { TABLES } from './actions.js';
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
  } finally {
    await rm(storage.staging, { recursive: true, force: true });
  }
}
