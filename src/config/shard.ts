import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.js';
import { bucketNameOf, type Environment } from './load.js';
import type { ProjectSettings, Settings } from './schema.js';

/** One of `count` parts of the projects, counted from 1. */
export interface Shard {
  readonly index: number;
  readonly count: number;
}

/** Reads `2/8`. Undefined for anything else. */
export function parseShard(text: string): Shard | undefined {
  const [, index, count] = /^([1-9]\d{0,3})\/([1-9]\d{0,3})$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  return shard.index <= shard.count ? shard : undefined;
}

export const formatShard = ({ index, count }: Shard): string => `${index}/${count}`;

/** What follows a command that is about a project, which is in one of `count` shards, if there are any. */
export const optionFor = (project: string, count: number | undefined): string =>
  count === undefined ? '' : shardOption({ index: shardOf(project, count), count });

/** What follows a command that is about one shard. */
export const shardOption = (shard: Shard | undefined): string =>
  shard === undefined ? '' : ` --shard ${formatShard(shard)}`;

/**
 * The shard of a project depends only on its id, so it does not change when projects are added or
 * removed. A project in shard i of n is in shard i or n + i of 2n.
 */
export const shardOf = (project: string, count: number): number =>
  (createHash('sha256').update(project).digest().readUInt32BE() % count) + 1;

export const isInShard = (project: string, shard: Shard | undefined): boolean =>
  shard === undefined || shardOf(project, shard.count) === shard.index;

/** The name of a shard's files and directories; `all` without shards. */
export const shardName = (shard: Shard | undefined): string =>
  shard === undefined ? 'all' : `shard-${shard.index}-of-${shard.count}`;

/** Replaced by the shard's name in `alerts.pingUrl`. */
const NAME = '{shard}';

/**
 * The settings of one shard: its projects, directory and ping address, and its share of the hourly
 * limit. Throws a `ConfigurationError` if the shards cannot have separate ones.
 */
export function settingsOfShard(settings: Settings, shard: Shard, environment: Environment = {}): Settings {
  const { projects, dataDir, history, alerts } = settings;
  const pingUrl = alerts.pingUrl?.replaceAll(NAME, shardName(shard));
  if (shard.count > 1 && pingUrl !== undefined && pingUrl === alerts.pingUrl)
    throw new ConfigurationError(
      `alerts.pingUrl is the same for all ${shard.count} shards, so one shard's success would hide another's failure. ` +
        `Add ${NAME} to it; for this shard, it becomes ${shardName(shard)}.`,
    );
  return {
    ...settings,
    projects: projects.filter(({ id }) => isInShard(id, shard)),
    dataDir: join(dataDir, shardName(shard)),
    history: { ...history, requestsPerHour: shareOfBudget(settings, shard, environment) },
    alerts: { ...alerts, pingUrl },
  };
}

/**
 * Shards do not communicate, so each takes an equal share of the limit: one part per shard that has
 * a project of the same bucket, for the bucket with the most shards.
 */
function shareOfBudget({ projects, history }: Settings, shard: Shard, environment: Environment) {
  const { requestsPerHour: limit } = history;
  if (limit === 'unlimited') return limit;
  const bucketOf = (project: ProjectSettings) => bucketNameOf(project, environment);
  const sharing = projects
    .filter(({ id }) => isInShard(id, shard))
    .map((one) => {
      const ofBucket = projects.filter((project) => bucketOf(project) === bucketOf(one));
      return new Set(ofBucket.map(({ id }) => shardOf(id, shard.count))).size;
    });
  const sharers = Math.max(1, ...sharing);
  if (limit < sharers)
    throw new ConfigurationError(
      `history.requestsPerHour: ${limit} is too few for the ${sharers} shards that share an hourly limit: each needs at least one. Use fewer shards.`,
    );
  return Math.floor(limit / sharers);
}

/**
 * Throws a `ConfigurationError` if the data directory was split into shards differently: its days
 * would be loaded again, and its jobs and emails created again.
 */
export async function refuseOtherSplit(dataDir: string, shard: Shard | undefined): Promise<void> {
  // A directory that cannot be read is reported when the database in it is opened.
  const entries = await readdir(dataDir).catch(() => []);
  const counts = new Set(entries.flatMap((name) => /^shard-\d+-of-(\d+)$/.exec(name)?.[1] ?? []));
  if (shard !== undefined && existsSync(join(dataDir, 'warehouse.duckdb')))
    throw new ConfigurationError(
      `${dataDir} contains one history of all projects. With --shard, a second history would load the same days and create the same jobs and emails again. ` +
        `Omit --shard, set another dataDir, or split the history as docs/scale.md explains.`,
    );
  const [other] = [...counts].filter((count) => count !== shard?.count.toString());
  if (other !== undefined)
    throw new ConfigurationError(
      `${dataDir} contains the histories of ${other} shards. Choose one: --shard I/${other}, with I from 1 to ${other}. ` +
        `To read all of them at once, add shards: ${other} to the configuration. To change the number of shards, see docs/scale.md.`,
    );
}
