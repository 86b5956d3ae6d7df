import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Shard, shardName } from '../../config/shard.js';
import { publishedElsewhere, publishedLater } from '../../effects/place.js';
import { ConfigurationError } from '../../errors.js';
import type { LakePlace, LakeStorage } from './storage.js';

/** The tables of a lake and their columns. `month` is in a file's path, not in the file. */
const COLUMNS = {
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
const SOURCE = 'readership.source';
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
const tableSchema = z.object({ fields: z.array(z.object({ name: z.string(), type: z.unknown() })) });

/** The last action for each file and publisher, and those for the table: the contents of a checkpoint. */
type TableState = ReadonlyMap<string, Action>;

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

/** The name of a publisher's transactions: its shard, and the id of its workspace. */
const PUBLISHER = /^readership:(all|shard-\d+-of-\d+):(.*)$/;
const FILE = /^month=\d{4}-\d{2}\/(all|shard-\d+-of-\d+)-[0-9a-f]{16}-[^-]+$/;
const matches = (form: RegExp, texts: Iterable<string>): RegExpExecArray[] =>
  [...texts].map((text) => form.exec(text)).filter((match) => match !== null);

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

/** The number of the last claim to send in a lake, and when it was made. */
export interface LastAct {
  readonly number: number;
  readonly at: Date;
}

/** The last claim to send; undefined before the first. */
export function lastAct(state: TableState, work: Publication): LastAct | undefined {
  const txn = state.get(actIdOf(work))?.txn;
  return txn ? { number: txn.version, at: new Date(Number(txn['lastUpdated'] ?? 0)) } : undefined;
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
          at: new Date(Number(txn['lastUpdated'] ?? 0)),
        }
      : [],
  );
  return found.sort((one, other) => other.number - one.number)[0];
}

/** Throws an `ElsewhereError` if another copy of the workspace has published. */
export function expectOwnPlace(state: TableState, work: Publication): void {
  const latest = latestPublisher(state, work);
  const { publisher, place } = work;
  if (publisher !== undefined && latest !== undefined && latest.place !== publisher.place)
    throw publishedElsewhere(place.location, latest.at);
}

/** As `expectOwnPlace`, and throws if a later state of this copy has published. */
export function expectLatest(state: TableState, work: Publication): void {
  expectOwnPlace(state, work);
  const latest = latestPublisher(state, work);
  if (work.publisher !== undefined && latest !== undefined && latest.number > work.publisher.number)
    throw publishedLater(work.place.location, latest.at);
}

/** Whether a data file of a table is of the shard. */
export const isOwn = (path: string, { shard }: Publication): boolean =>
  FILE.exec(path)?.[1] === shardName(shard);

/** Whether another program wrote a data file. It may hold rows of any shard. */
export const isForeign = (path: string): boolean => !FILE.test(path);

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
}

/** What a table may need of a writer, if its settings do not make use of it. */
const FEATURES = [
  ...['appendOnly', 'invariants', 'checkConstraints', 'changeDataFeed', 'generatedColumns'],
  ...['timestampNtz', 'vacuumProtocolCheck'],
];

/** Throws a `ConfigurationError` if another program changed how a table is to be written, which names the change and its end. */
export function expectWritable(table: TableName, state: TableState, { place }: Publication): void {
  const { protocol } = state.get('protocol') ?? {};
  const { metaData } = state.get('metaData') ?? {};
  if (!protocol || !metaData) return;
  const location = `${place.location}/${table}`;
  const alter = (change: string) =>
    `In Spark, run ALTER TABLE delta.\`${location}\` ${change}, then publish again.`;
  const refuse = (what: string, next: string) =>
    refusal(place, `was changed by another program: its table ${table} ${what}`, next);
  const features = [...(protocol.readerFeatures ?? []), ...(protocol.writerFeatures ?? [])];
  const unknown = features.find((name) => !FEATURES.includes(name));
  if (unknown !== undefined)
    throw refuse(
      `has the feature ${unknown}, which Readership cannot write`,
      alter(`DROP FEATURE ${unknown}`),
    );
  if (protocol.minReaderVersion > 3 || protocol.minWriterVersion > 7)
    throw refuse('needs a newer writer', 'Publish to another location.');
  for (const [name, value] of Object.entries(metaData.configuration)) {
    const isSet = { 'delta.appendOnly': 'true', 'delta.enableChangeDataFeed': 'true' }[name] === value;
    if (isSet) throw refuse(`has the property ${name}`, alter(`SET TBLPROPERTIES ('${name}' = 'false')`));
    if (name === 'delta.columnMapping.mode' && value !== 'none')
      throw refuse(`has the property ${name}`, 'Publish to another location.');
    if (name.startsWith('delta.constraints.')) {
      const constraint = name.slice('delta.constraints.'.length);
      throw refuse(`has the constraint ${constraint}`, alter(`DROP CONSTRAINT ${constraint}`));
    }
  }
  const { fields } = tableSchema.parse(JSON.parse(metaData.schemaString));
  for (const [name, type] of Object.entries({ ...COLUMNS[table], month: 'string' }))
    if (!fields.some((field) => field.name === name && field.type === type))
      throw refuse(`has no column ${name} of type ${type} any more`, 'Publish to another location.');
  if (metaData.partitionColumns.join() !== 'month')
    throw refuse('is no longer partitioned by month', 'Publish to another location.');
}

const sourceOf = (state: TableState): string | undefined =>
  state.get('metaData')?.metaData?.configuration[SOURCE];
