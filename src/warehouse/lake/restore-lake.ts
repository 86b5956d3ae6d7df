import type { DuckDBConnection } from '@duckdb/node-api';
import { rm } from 'node:fs/promises';
import { type Shard, shardName } from '../../config/shard.js';
import { ConfigurationError } from '../../errors.js';
import { recordLake, workspaceIdOf } from '../identity.js';
import { quoted } from '../instance.js';
import { readSql } from '../query.js';
import { TABLES } from './actions.js';
import { ownerOf } from './ownership.js';
import { openStorage } from './place.js';
import type { LakePlace } from './storage.js';
import { LakeTable } from './table.js';

/**
 * Fills an empty, migrated database at `path` with the days of a lake, and makes it the workspace that wrote them, so
 * that it may publish there. Throws a `ConfigurationError` when the lake has no days of the shard.
 */
export async function fillFromLake(
  connection: DuckDBConnection,
  path: string,
  place: LakePlace,
  shard: Shard | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { location } = place;
  const storage = await openStorage(place, `restore-${shardName(shard)}`, path, signal);
  const publisher = { workspaceId: '', shard, source: '' };
  try {
    for (const name of TABLES) {
      const table = new LakeTable({ storage, connection, publisher, now: new Date(0), signal }, name);
      await table.refresh();
      const owner = table.snapshot.version < 0 ? undefined : ownerOf(location, table.snapshot, shard);
      const files: string[] = [];
      for (const file of table.ownFiles) files.push(quoted(await storage.localCopy(`${name}/${file.path}`)));
      if (owner === undefined || (name === 'days' && files.length === 0))
        throw new ConfigurationError(
          `The lake ${location} has no days of ${shard ? `shard ${shardName(shard)}` : 'this workspace'}. Nothing was changed. Check its address, and --shard.`,
        );
      await connection.run(`SET VARIABLE lake_files = [${files.join()}]::VARCHAR[]`);
      if (files.length > 0) await connection.run(readSql(import.meta.url, `restore-${name}.sql`));
      await workspaceIdOf(connection, owner);
      await recordLake(connection, location);
    }
  } finally {
    await rm(storage.staging, { recursive: true, force: true });
  }
}
