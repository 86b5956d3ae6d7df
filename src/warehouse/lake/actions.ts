import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Shard, shardName } from '../../config/shard.js';
import { type Place, placeDigest } from '../../effects/place.js';
import type { WorkspaceRow } from '../identity.js';
import type { LakePlace, LakeStorage } from './storage.js';

/** The tables of a lake and their columns. `month` is in a file's path, not in the file. */
export const COLUMNS = {
  views: { project: 'string', day: 'date', path: 'string', human: 'long', ai: 'long', total: 'long' },
  days: {
    project: 'string',
    day: 'date',
    state: 'string',
    loaded_at: 'timestamp',
    human: 'long',
    ai: 'long',
    total: 'long',
    pages: 'long',
  },
} as const;
export const TABLES = ['views', 'days'] as const;
export type TableName = (typeof TABLES)[number];

export const fileSchema = z.looseObject({
  path: z.string(),
  partitionValues: z.record(z.string(), z.string().nullable()).nullish(),
  deletionTimestamp: z.int().nullish(),
});
export type LakeFile = z.infer<typeof fileSchema>;

/** The table property that holds the platform's address. */
export const SOURCE = 'readership.source';
/** A line of a log: the fields used here. All others are preserved. */
export const actionSchema = z.looseObject({
  add: fileSchema.nullish(),
  remove: fileSchema.nullish(),
  txn: z.looseObject({ appId: z.string(), version: z.int() }).nullish(),
  protocol: z
    .looseObject({
      minReaderVersion: z.int(),
      minWriterVersion: z.int(),
      readerFeatures: z.array(z.string()).nullish(),
      writerFeatures: z.array(z.string()).nullish(),
    })
    .nullish(),
  metaData: z
    .looseObject({
      configuration: z.record(z.string(), z.string()),
      partitionColumns: z.array(z.string()).default([]),
      schemaString: z.string().default('{"fields":[]}'),
    })
    .nullish(),
});
export type Action = z.infer<typeof actionSchema>;
export const tableSchema = z.object({ fields: z.array(z.object({ name: z.string(), type: z.unknown() })) });

/** How a lake is read, or published. */
export interface LakeOptions {
  readonly place: LakePlace;
  /** One of the shards of the workspace; undefined if it is not split. */
  readonly shard: Shard | undefined;
  /** The platform's address, so that no shard joins the lake of another platform. */
  readonly source: string;
  readonly now: Date;
  readonly signal: AbortSignal;
  /** Whether every file is written again, whatever is in the lake. */
  readonly isRebuild?: boolean | undefined;
  /** Where the workspace is; it publishes only if no other copy, and no later state, has. */
  readonly here?: Place | undefined;
}

/** An open lake. */
export interface Lake extends LakeOptions {
  readonly storage: LakeStorage;
  /** The files that existed when it was opened. */
  readonly existing: ReadonlyMap<string, Date>;
  readonly connection: DuckDBConnection;
  /** What the database records of the workspace that publishes. */
  readonly workspace: WorkspaceRow;
}

/** What the log of a table says: the last action for each file and publisher, and those for the table, as in a checkpoint. */
export interface TableLog {
  readonly lake: Lake;
  readonly name: TableName;
  readonly state: ReadonlyMap<string, Action>;
}

/** The actions that create a table. Every engine supports reader version 1 and writer version 2. */
export function creation({ name: table, lake }: TableLog): Action[] {
  const columns = Object.entries({ ...COLUMNS[table], month: 'string' });
  const fields = columns.map(([name, type]) => ({ name, type, nullable: true, metadata: {} }));
  const metaData = {
    id: randomUUID(),
    partitionColumns: ['month'],
    createdTime: lake.now.getTime(),
    configuration: { [SOURCE]: lake.source, ...retention(lake) },
    format: { provider: 'parquet', options: {} },
    schemaString: JSON.stringify({ type: 'struct', fields }),
  };
  const { claim } = lake.workspace;
  const known = table === 'days' && claim > 0 ? [claimAction(claim, lake)] : [];
  return [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }, ...known];
}

/** How long replaced files and log entries are kept, as engines expect it. */
const retention = ({ place: { keepReplacedMs } }: Lake): Record<string, string> => {
  const interval = `interval ${Math.ceil(keepReplacedMs / 3_600_000)} hours`;
  return { 'delta.deletedFileRetentionDuration': interval, 'delta.logRetentionDuration': interval };
};

/** The action that says how long replaced files are kept; none if the table says so already. */
export function retentionChange({ state, lake }: TableLog): Action[] {
  const metaData = state.get('metaData')?.metaData;
  if (!metaData) return [];
  const wanted = retention(lake);
  const isSaid = Object.entries(wanted).every(([name, value]) => metaData.configuration[name] === value);
  return isSaid
    ? []
    : [{ metaData: { ...metaData, configuration: { ...metaData.configuration, ...wanted } } }];
}

const FILE = /^month=\d{4}-\d{2}\/(all|shard-\d+-of-\d+)-[0-9a-f]{16}-[^-]+$/;

/** Whether a data file of a table is of the shard. */
export const isOwn = (path: string, { shard }: Lake): boolean => FILE.exec(path)?.[1] === shardName(shard);

/** Whether another program wrote a data file. It may hold rows of any shard. */
export const isForeign = (path: string): boolean => !FILE.test(path);

/** The part of a file's name that identifies its contents: the month, the shard and the digest of its rows. */
export const monthNameOf = (path: string): string => path.slice(0, path.lastIndexOf('-'));

/** The files of this publisher, and those that another program wrote, which may hold its rows. */
export const filesOf = ({ state, lake }: TableLog): LakeFile[] =>
  [...state.values()].flatMap(({ add }) =>
    add && (isOwn(add.path, lake) || isForeign(add.path)) ? add : [],
  );

/** The path of a file of a table in the lake. */
export const pathInLake = (table: TableName, { path }: LakeFile): string =>
  `${table}/${decodeURIComponent(path)}`;

/** The transactions in which a shard numbers its commits, its publications from a place, and its claims to send. */
export const appIdOf = ({ shard, workspace }: Lake): string =>
  `readership:${shardName(shard)}:${workspace.id}`;
const placeIdOf = ({ shard }: Lake, digest: string): string =>
  `readership-place:${shardName(shard)}:${digest}`;
const claimIdOf = ({ shard }: Lake): string => `readership-claim:${shardName(shard)}`;

const numbered = (appId: string, version: number, { now }: Lake): Action => ({
  txn: { appId, version, lastUpdated: now.getTime() },
});

export const placeAction = (here: Place, publications: number, lake: Lake): Action =>
  numbered(placeIdOf(lake, placeDigest(here)), publications, lake);

export const claimAction = (claim: number, lake: Lake): Action => numbered(claimIdOf(lake), claim, lake);

/** The number of the last claim to send in a lake, and when it was made. */
export interface LastClaim {
  readonly number: number;
  readonly at: Date;
}

/** The latest of the transactions whose name starts with `start`, and how its name ends. */
function latest({ state }: TableLog, start: string): (LastClaim & { readonly end: string }) | undefined {
  const found = [...state.values()].flatMap(({ txn }) =>
    txn?.appId.startsWith(start)
      ? {
          end: txn.appId.slice(start.length),
          number: txn.version,
          at: new Date(Number(txn['lastUpdated'] ?? 0)),
        }
      : [],
  );
  return found.sort((one, other) => other.number - one.number)[0];
}

/** The last claim to send; undefined before the first. All shards in a lake have the same count, so no name starts another. */
export const lastClaim = (table: TableLog): LastClaim | undefined => latest(table, claimIdOf(table.lake));

/** The latest publication of this shard of the workspace; `end` is a digest of its place. */
export const latestPublication = (table: TableLog): ReturnType<typeof latest> =>
  latest(table, placeIdOf(table.lake, ''));
