import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Shard, shardName } from '../../config/shard.js';
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
};
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

/** The last action for each file and publisher, and those for the table: the contents of a checkpoint. */
export type TableState = ReadonlyMap<string, Action>;

/** The actions that create a table. Every engine supports reader version 1 and writer version 2. */
export function creation(table: TableName, work: Publication): Action[] {
  const columns = Object.entries({ ...COLUMNS[table], month: 'string' });
  const fields = columns.map(([name, type]) => ({ name, type, nullable: true, metadata: {} }));
  const metaData = {
    id: randomUUID(),
    partitionColumns: ['month'],
    createdTime: work.now.getTime(),
    configuration: { [SOURCE]: work.source, ...retention(work) },
    format: { provider: 'parquet', options: {} },
    schemaString: JSON.stringify({ type: 'struct', fields }),
  };
  const known = table === 'days' && work.act ? [actAction(work.act, work)] : [];
  return [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }, ...known];
}

/** How long replaced files and log entries are kept, as engines expect it. */
const retention = ({ place: { keepReplacedMs } }: Publication): Record<string, string> => {
  const interval = `interval ${Math.ceil(keepReplacedMs / 3_600_000)} hours`;
  return { 'delta.deletedFileRetentionDuration': interval, 'delta.logRetentionDuration': interval };
};

/** The action that says how long replaced files are kept; none if the table says so already. */
export function retentionChange(state: TableState, work: Publication): Action[] {
  const metaData = state.get('metaData')?.metaData;
  if (!metaData) return [];
  const wanted = retention(work);
  const isSaid = Object.entries(wanted).every(([name, value]) => metaData.configuration[name] === value);
  return isSaid
    ? []
    : [{ metaData: { ...metaData, configuration: { ...metaData.configuration, ...wanted } } }];
}

/** The context of one publish. */
export interface Publication {
  readonly place: LakePlace;
  readonly storage: LakeStorage;
  /** The files that existed when it began. */
  readonly existing: ReadonlyMap<string, Date>;
  readonly connection: DuckDBConnection;
  /** A workspace, or one of its shards. */
  readonly workspaceId: string;
  readonly shard: Shard | undefined;
  /** The platform's address, so that no shard joins the lake of another platform. */
  readonly source: string;
  readonly now: Date;
  readonly signal: AbortSignal;
  /** Whether every file is written again, whatever is in the lake. */
  readonly isRebuild?: boolean | undefined;
  /** Where it is published from, and how often it was; absent if nobody may publish. */
  readonly publisher?: Publisher | undefined;
  /** Whether the workspace was published there before, so that a lake that is missing is not a new one. */
  readonly isKnown?: boolean;
  /** The last claim to send that the workspace knows; 0 before the first. */
  readonly act?: number;
}

/** Where a workspace was published from, and how often it had been by then. */
export interface Publisher {
  /** A digest of the place. */
  readonly place: string;
  readonly number: number;
}

const FILE = /^month=\d{4}-\d{2}\/(all|shard-\d+-of-\d+)-[0-9a-f]{16}-[^-]+$/;
export const appIdOf = ({ workspaceId, shard }: Publication): string =>
  `readership:${shardName(shard)}:${workspaceId}`;

/** The name of the transactions that say where a shard of a workspace was published from. */
const placeIdOf = ({ shard }: Publication, place: string): string =>
  `readership-place:${shardName(shard)}:${place}`;

/** The name of the transactions that number what a shard of a workspace sends. */
const actIdOf = ({ shard }: Publication): string => `readership-act:${shardName(shard)}`;

const numbered = (appId: string, version: number, { now }: Publication): Action => ({
  txn: { appId, version, lastUpdated: now.getTime() },
});

/** The actions that a commit of this publisher adds to others. */
export const publisherActions = (work: Publication): Action[] =>
  work.publisher === undefined
    ? []
    : [numbered(placeIdOf(work, work.publisher.place), work.publisher.number, work)];

export const actAction = (number: number, work: Publication): Action => numbered(actIdOf(work), number, work);

/** When a numbered action was committed. */
const timeOf = (txn: NonNullable<Action['txn']>): Date => new Date(Number(txn['lastUpdated'] ?? 0));

/** The number of the last claim to send in a lake, and when it was made. */
export interface LastAct {
  readonly number: number;
  readonly at: Date;
}

/** The last claim to send; undefined before the first. */
export function lastAct(state: TableState, work: Publication): LastAct | undefined {
  const txn = state.get(actIdOf(work))?.txn;
  return txn ? { number: txn.version, at: timeOf(txn) } : undefined;
}

/** The latest publisher of this shard of the workspace, and when it published. */
export function latestPublisher(
  state: TableState,
  work: Publication,
): (Publisher & { readonly at: Date }) | undefined {
  const start = placeIdOf(work, '');
  const found = [...state.values()].flatMap(({ txn }) =>
    txn?.appId.startsWith(start)
      ? {
          place: txn.appId.slice(start.length),
          number: txn.version,
          at: timeOf(txn),
        }
      : [],
  );
  return found.sort((one, other) => other.number - one.number)[0];
}

/** Whether a data file of a table is of the shard. */
export const isOwn = (path: string, { shard }: Publication): boolean =>
  FILE.exec(path)?.[1] === shardName(shard);

/** Whether another program wrote a data file. It may hold rows of any shard. */
export const isForeign = (path: string): boolean => !FILE.test(path);

/** The part of a file's name that identifies its contents: the month, the shard and the digest of its rows. */
export const monthNameOf = (path: string): string => path.slice(0, path.lastIndexOf('-'));
