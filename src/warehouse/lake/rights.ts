import { shardName, shardOption } from '../../config/shard.js';
import { placeDigest, publishedElsewhere, publishedLater } from '../../effects/place.js';
import { ConfigurationError } from '../../errors.js';
import { COLUMNS, latestPublication, SOURCE, type TableLog, tableSchema } from './actions.js';
import type { LakePlace } from './storage.js';

/** Throws an `ElsewhereError` if another copy of the workspace has published, which the table of days knows. */
export function expectOwnPlace(days: TableLog): void {
  const { here, place, shard } = days.lake;
  const latest = latestPublication(days);
  if (here !== undefined && latest !== undefined && latest.end !== placeDigest(here))
    throw publishedElsewhere(place.location, latest.at, shardOption(shard));
}

/** As `expectOwnPlace`, and throws if a later state of this copy has published. */
export function expectLatest(days: TableLog): void {
  const { here, place, shard, workspace } = days.lake;
  expectOwnPlace(days);
  const latest = latestPublication(days);
  if (here !== undefined && latest !== undefined && latest.number > workspace.publications)
    throw publishedLater(place.location, latest.at, shardOption(shard));
}

/** The name of a publisher's transactions: its shard, and the id of its workspace. */
const PUBLISHER = /^readership:(all|shard-\d+-of-\d+):(.*)$/;

const refusal = ({ location }: LakePlace, why: string, next = 'Use another location.'): ConfigurationError =>
  new ConfigurationError(`The lake ${location} ${why}. Nothing in it was changed. ${next}`);

const splitOf = (publisher: string): string =>
  publisher === 'all' ? 'no shards' : `${publisher.slice(publisher.lastIndexOf('-') + 1)} shards`;

/**
 * The id of the workspace that publishes to a table as the shard; undefined before its first
 * publish. Throws a `ConfigurationError` when the table is not a lake of Readership, or has another
 * number of shards.
 */
export function ownerOf(table: TableLog): string | undefined {
  const { place, shard } = table.lake;
  if (sourceOf(table) === undefined)
    throw refusal(place, 'contains a Delta table that Readership did not create');
  const own = splitOf(shardName(shard));
  let owner: string | undefined;
  for (const appId of table.state.keys()) {
    const [, publisher, workspaceId] = PUBLISHER.exec(appId) ?? [];
    if (publisher === undefined) continue;
    if (splitOf(publisher) !== own)
      throw refusal(
        place,
        `is written by ${splitOf(publisher)}, but this process is one of ${own}, so its projects would be in the lake twice`,
        'Use another location, or see docs/scale.md for how to change the number of shards.',
      );
    if (publisher === shardName(shard)) owner ??= workspaceId;
  }
  return owner;
}

/** Throws a `ConfigurationError` if the table exists and this publisher may not write to it. */
export function expectOwn(table: TableLog): void {
  const { place, source, workspace } = table.lake;
  if (table.state.size === 0) return;
  const owner = ownerOf(table);
  if (owner === undefined ? sourceOf(table) !== source : owner !== workspace.id)
    throw refusal(
      place,
      owner === undefined ? `contains page views of ${sourceOf(table)}` : 'was written by another workspace',
      'Use another location. If this workspace lost its database, restore it from the lake: readership restore --from',
    );
}

/** What a table may need of a writer, if its settings do not make use of it. */
const FEATURES = [
  ...['appendOnly', 'invariants', 'checkConstraints', 'changeDataFeed', 'generatedColumns'],
  ...['timestampNtz', 'vacuumProtocolCheck'],
];

/** Throws a `ConfigurationError` if another program changed how a table is to be written, which names the change and its end. */
export function expectWritable({ name: table, state, lake: { place } }: TableLog): void {
  const { protocol } = state.get('protocol') ?? {};
  const { metaData } = state.get('metaData') ?? {};
  if (!protocol || !metaData) return;
  const alter = (change: string) =>
    `In Spark, run ALTER TABLE delta.\`${place.location}/${table}\` ${change}, then publish again.`;
  const refuse = (what: string, next = 'Publish to another location.') =>
    refusal(place, `was changed by another program: its table ${table} ${what}`, next);
  const features = [...(protocol.readerFeatures ?? []), ...(protocol.writerFeatures ?? [])];
  const unknown = features.find((name) => !FEATURES.includes(name));
  if (unknown !== undefined)
    throw refuse(
      `has the feature ${unknown}, which Readership cannot write`,
      alter(`DROP FEATURE ${unknown}`),
    );
  if (protocol.minReaderVersion > 3 || protocol.minWriterVersion > 7) throw refuse('needs a newer writer');
  for (const [name, value] of Object.entries(metaData.configuration)) {
    const isSet = { 'delta.appendOnly': 'true', 'delta.enableChangeDataFeed': 'true' }[name] === value;
    if (isSet) throw refuse(`has the property ${name}`, alter(`SET TBLPROPERTIES ('${name}' = 'false')`));
    if (name === 'delta.columnMapping.mode' && value !== 'none') throw refuse(`has the property ${name}`);
    const [, constraint] = /^delta\.constraints\.(.*)/.exec(name) ?? [];
    if (constraint !== undefined)
      throw refuse(`has the constraint ${constraint}`, alter(`DROP CONSTRAINT ${constraint}`));
  }
  const { fields } = tableSchema.parse(JSON.parse(metaData.schemaString));
  for (const [name, type] of Object.entries({ ...COLUMNS[table], month: 'string' }))
    if (!fields.some((field) => field.name === name && field.type === type))
      throw refuse(`has no column ${name} of type ${type} any more`);
  if (metaData.partitionColumns.join() !== 'month') throw refuse('is no longer partitioned by month');
}

const sourceOf = ({ state }: TableLog): string | undefined =>
  state.get('metaData')?.metaData?.configuration[SOURCE];
