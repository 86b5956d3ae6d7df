import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Shard, shardName } from '../../config/shard.js';
import { ConfigurationError } from '../../errors.js';
import type { LakePlace, LakeStorage } from './storage.js';

/** The tables of a lake and their columns. `month` is in a file's path, not in the file. */
const COLUMNS = {
  views: { project: 'string', day: 'date', path: 'string', human: 'long', ai: 'long', total: 'long' },
  days: {
    ...{ project: 'string', day: 'date', state: 'string', loaded_at: 'timestamp' },
    ...{ human: 'long', ai: 'long', total: 'long', pages: 'long' },
  },
};
export const TABLES = ['views', 'days'] as const;
export type TableName = (typeof TABLES)[number];

export const fileSchema = z.looseObject({ path: z.string(), deletionTimestamp: z.int().nullish() });
export type LakeFile = z.infer<typeof fileSchema>;

/** The table property that holds the platform's address. */
const SOURCE = 'readership.source';
const NEWER = 'the table needs a newer reader or writer';
/** A line of a log: the fields used here. All others are preserved. */
export const actionSchema = z.looseObject({
  add: fileSchema.nullish(),
  remove: fileSchema.nullish(),
  txn: z.looseObject({ appId: z.string(), version: z.int() }).nullish(),
  protocol: z
    .looseObject({ minReaderVersion: z.literal(1, NEWER), minWriterVersion: z.int().max(2, NEWER) })
    .nullish(),
  metaData: z.looseObject({ configuration: z.record(z.string(), z.string()) }).nullish(),
});
export type Action = z.infer<typeof actionSchema>;

/** The last action for each file and publisher, and those for the table: the contents of a checkpoint. */
type TableState = ReadonlyMap<string, Action>;

/** The actions that create a table. Every engine supports reader version 1 and writer version 2. */
export function creation(table: TableName, source: string, now: Date): Action[] {
  const columns = Object.entries({ ...COLUMNS[table], month: 'string' });
  const fields = columns.map(([name, type]) => ({ name, type, nullable: true, metadata: {} }));
  const metaData = {
    ...{ id: randomUUID(), partitionColumns: ['month'], createdTime: now.getTime() },
    configuration: { [SOURCE]: source },
    format: { provider: 'parquet', options: {} },
    schemaString: JSON.stringify({ type: 'struct', fields }),
  };
  return [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }];
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
}

/** The name of a publisher's transactions: its shard, and the id of its workspace. */
const PUBLISHER = /^readership:(all|shard-\d+-of-\d+):(.*)$/;
const FILE = /^month=\d{4}-\d{2}\/(all|shard-\d+-of-\d+)-[0-9a-f]{16}-[^-]+$/;
const matches = (form: RegExp, texts: Iterable<string>): RegExpExecArray[] =>
  [...texts].map((text) => form.exec(text)).filter((match) => match !== null);

export const appIdOf = ({ workspaceId, shard }: Publication): string =>
  `readership:${shardName(shard)}:${workspaceId}`;

/** Whether a data file of a table is of the shard. */
export const isOwn = (path: string, { shard }: Publication): boolean =>
  FILE.exec(path)?.[1] === shardName(shard);

/** The part of a file's name that identifies its contents: the month, the shard and the digest of its rows. */
export const monthNameOf = (path: string): string => path.slice(0, path.lastIndexOf('-'));

const refusal = ({ location }: LakePlace, why: string, next = 'Use another location.'): ConfigurationError =>
  new ConfigurationError(`The lake ${location} ${why}. Nothing in it was changed. ${next}`);

const splitOf = (publisher: string): string =>
  publisher === 'all' ? 'no shards' : `${publisher.slice(publisher.lastIndexOf('-') + 1)} shards`;

/** The publishers of a lake all have the same number of shards. */
function expectSplit(publisher: string, { place, shard }: Publication): void {
  const [theirs, own] = [splitOf(publisher), splitOf(shardName(shard))];
  if (theirs !== own)
    throw refusal(
      place,
      `is written by ${theirs}, but this process is one of ${own}, so its projects would be in the lake twice`,
      'Use another location, or see docs/scale.md for how to change the number of shards.',
    );
}

/**
 * The id of the workspace that publishes to a table as the shard; undefined before its first
 * publish. Throws a `ConfigurationError` when the table is not a lake of Readership, or has another
 * number of shards.
 */
export function ownerOf(state: TableState, work: Publication): string | undefined {
  if (sourceOf(state) === undefined)
    throw refusal(work.place, 'contains a Delta table that Readership did not create');
  const publishers = matches(PUBLISHER, state.keys());
  for (const [, name = ''] of publishers) expectSplit(name, work);
  return publishers.find(([, name]) => name === shardName(work.shard))?.[2];
}

/** Throws a `ConfigurationError` if the table exists and this publisher may not write to it. */
export function expectOwn(state: TableState, work: Publication): void {
  if (state.size === 0) return;
  const owner = ownerOf(state, work);
  const source = sourceOf(state);
  if (owner === undefined ? source !== work.source : owner !== work.workspaceId)
    throw refusal(
      work.place,
      owner === undefined ? `contains page views of ${source}` : 'was written by another workspace',
      'Use another location. If this workspace lost its database, restore it from the lake: readership restore --from',
    );
  for (const { add } of state.values())
    if (add && !FILE.test(add.path))
      throw refusal(work.place, `was changed by another program (${add.path})`);
}

const sourceOf = (state: TableState): string | undefined =>
  state.get('metaData')?.metaData?.configuration[SOURCE];
