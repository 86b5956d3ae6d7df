import { shardName } from '../../config/shard.js';
import { publishedElsewhere, publishedLater } from '../../effects/place.js';
import { ConfigurationError } from '../../errors.js';
import {
  COLUMNS,
  latestPublisher,
  type Publication,
  SOURCE,
  type TableName,
  tableSchema,
  type TableState,
} from './actions.js';
import type { LakePlace } from './storage.js';

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

/** The name of a publisher's transactions: its shard, and the id of its workspace. */
const PUBLISHER = /^readership:(all|shard-\d+-of-\d+):(.*)$/;
const matches = (form: RegExp, texts: Iterable<string>): RegExpExecArray[] =>
  [...texts].map((text) => form.exec(text)).filter((match) => match !== null);

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
