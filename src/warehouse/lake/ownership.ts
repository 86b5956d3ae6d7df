import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { type Shard, shardName } from '../../config/shard.js';
import { ConfigurationError } from '../../errors.js';
import { quoted } from '../instance.js';
import { queryRows } from '../query.js';
import type { Snapshot } from './actions.js';
import type { LakeStorage } from './storage.js';

/** Who publishes: a workspace, or one shard of it. */
export interface Publisher {
  readonly workspaceId: string;
  readonly shard: Shard | undefined;
  /** The platform's address, so that no shard joins the lake of another platform. */
  readonly source: string;
}

/** What publishing a lake works with. */
export interface Publication {
  readonly storage: LakeStorage;
  readonly connection: DuckDBConnection;
  readonly publisher: Publisher;
  readonly now: Date;
  readonly signal: AbortSignal;
}

/** Of a lake of version 0.1.0. */
const MANIFEST = /^_manifests\/(?:all|shard-\d+-of-(?<count>\d+))\.json$/;
const FILE = /^month=\d{4}-\d{2}\/(?<publisher>all|shard-\d+-of-\d+)-[0-9a-f]{16}-[^-]+$/;

/** The name of a publisher's transactions in the log of a table. */
export const appIdOf = ({ workspaceId, shard }: Omit<Publisher, 'source'>): string =>
  `readership:${shardName(shard)}:${workspaceId}`;

export const configurationOf = ({ shard, source }: Publisher): Record<string, string> => ({
  'readership.split': splitOf(shard?.count),
  'readership.source': source,
});

/** Whether a data file of a table is of the shard. */
export const isOwn = (path: string, { shard }: Publisher): boolean =>
  FILE.exec(path)?.groups?.['publisher'] === shardName(shard);

/** The part of a file's name that says what it holds: a month, whose, and the digest of its rows. */
export const monthNameOf = (path: string): string => path.slice(0, path.lastIndexOf('-'));

const splitOf = (shards: number | string | undefined): string =>
  shards === undefined ? 'no shards' : `${shards} shards`;

const refusal = (location: string, why: string, next = 'Name another place.'): ConfigurationError =>
  new ConfigurationError(`The lake ${location} ${why}. Nothing in it was changed. ${next}`);

function expectSplit(location: string, split: string, shard: Shard | undefined): void {
  if (split === splitOf(shard?.count)) return;
  throw refusal(
    location,
    `is written by ${split}, and this is one of ${splitOf(shard?.count)}: its projects would be in it twice`,
    'Name another place, or see docs/scale.md for how to change the number of shards.',
  );
}

/**
 * The id of the workspace that publishes to the table as `shard`; undefined before its first publish. Throws a
 * `ConfigurationError` when the table is not a lake of Readership, or has another number of shards.
 */
export function ownerOf(
  location: string,
  { latest }: Snapshot,
  shard: Shard | undefined,
): string | undefined {
  const split = latest.get('metaData')?.metaData?.configuration['readership.split'];
  if (split === undefined) throw refusal(location, 'holds a Delta table that Readership did not make');
  expectSplit(location, split, shard);
  const prefix = appIdOf({ shard, workspaceId: '' });
  return [...latest.keys()].find((appId) => appId.startsWith(prefix))?.slice(prefix.length);
}

/** Throws a `ConfigurationError` when the table exists and is not this publisher's to write. */
export function expectOwn(location: string, snapshot: Snapshot, publisher: Publisher): void {
  if (snapshot.version < 0) return;
  const owner = ownerOf(location, snapshot, publisher.shard);
  const source = snapshot.latest.get('metaData')?.metaData?.configuration['readership.source'];
  if (owner === undefined ? source !== publisher.source : owner !== publisher.workspaceId)
    throw refusal(
      location,
      owner === undefined ? `has the page views of ${source}` : 'was written by another workspace',
      'Name another place. If this workspace lost its database, restore it from the lake: readership restore --from',
    );
  const strange = snapshot.files.find(({ path }) => !FILE.test(path));
  if (strange !== undefined) throw refusal(location, `was changed by another program (${strange.path})`);
}

/**
 * The files that version 0.1.0 left of this publisher in a lake: data, and last its manifest. Undefined where there
 * is no such lake. Throws a `ConfigurationError` when it was split differently, or holds a project that the database lacks.
 */
export async function findOldLake(
  { storage, connection, publisher: { shard } }: Publication,
  existing: ReadonlyMap<string, Date>,
): Promise<string[] | undefined> {
  const paths = [...existing.keys()];
  const manifests = paths.map((path) => MANIFEST.exec(path)).filter((match) => match !== null);
  if (manifests.length === 0) return undefined;
  for (const { groups } of manifests) expectSplit(storage.location, splitOf(groups?.['count']), shard);
  const name = shardName(shard);
  const own = new RegExp(
    `^(views|days)/month=[-0-9]{7}/${name}-[0-9a-f]{16}\\.parquet$|^_manifests/(${name}\\.json|.*\\.${name}-)`,
  );
  const left = paths
    .filter((path) => own.test(path))
    .sort()
    .reverse();
  const days = left.filter((path) => path.startsWith('days/')).map((path) => storage.localCopy(path));
  if (days.length === 0) return left;
  const files = (await Promise.all(days)).map(quoted).join();
  const sql = `SELECT project FROM read_parquet([${files}]) ANTI JOIN lake_projects USING (project) LIMIT 1`;
  const [stranger] = await queryRows(connection, sql, z.object({ project: z.string() }));
  if (stranger === undefined) return left;
  throw refusal(storage.location, `has project ${stranger.project}, which this database does not have`);
}
