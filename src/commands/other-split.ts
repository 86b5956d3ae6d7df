import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Shard } from '../config/shard.js';
import { ConfigurationError } from '../errors.js';

/**
 * Throws a `ConfigurationError` when the data directory holds the history of projects that were split otherwise: days
 * would be loaded again, and jobs and mails that the other history knows of made again.
 */
export async function refuseOtherSplit(dataDir: string, shard: Shard | undefined): Promise<void> {
  // One that cannot be read is explained by whoever opens the database in it.
  const entries = await readdir(dataDir).catch(() => []);
  const counts = new Set(entries.flatMap((name) => /^shard-\d+-of-(\d+)$/.exec(name)?.[1] ?? []));
  if (shard !== undefined && existsSync(join(dataDir, 'warehouse.duckdb')))
    throw new ConfigurationError(
      `${dataDir} holds the history of all projects together, and --shard would begin another beside it: days loaded again, jobs and mails made again. ` +
        `Leave --shard out, set another dataDir, or split the history as docs/scale.md says.`,
    );
  const [other] = [...counts].filter((count) => count !== shard?.count.toString());
  if (other !== undefined)
    throw new ConfigurationError(
      `${dataDir} holds the history of ${other} shards. Say which: --shard I/${other}, with I from 1 to ${other}. ` +
        `To change the number of shards, see docs/scale.md.`,
    );
}
