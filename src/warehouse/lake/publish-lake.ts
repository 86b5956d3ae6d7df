import type { DuckDBConnection } from '@duckdb/node-api';
import { z } from 'zod';
import { isInShard, type Shard, shardName } from '../../config/shard.js';
import { messageOf, StorageError } from '../../errors.js';
import { exists } from '../../files.js';
import { quoted } from '../instance.js';
import { queryRows, readSql } from '../query.js';
import { syncToDisk } from '../../files.js';
import type { Warehouse } from '../warehouse.js';
import { LakeDirectory } from './directory.js';
import { DATASETS, filesOf } from './manifest.js';

const STORED_PROJECTS = readSql(import.meta.url, 'stored-projects.sql');
const MONTHS = readSql(import.meta.url, 'months.sql');

const projectRow = z.object({ project: z.string() });
const monthRow = z.object({
  dataset: z.enum(DATASETS),
  month: z.string().regex(/^\d{4}-\d{2}$/),
  rows: z.int(),
  digest: z.string(),
});

/** A file of the lake: what one month of a dataset says. */
interface Part extends z.infer<typeof monthRow> {
  readonly file: string;
}

export interface LakeOptions {
  readonly directory: string;
  /** Only its projects are written, whatever else is stored. */
  readonly shard: Shard | undefined;
  readonly signal: AbortSignal;
}

/** How many files this publisher has in the lake, and what was done to get there. */
export interface LakeChange {
  readonly files: number;
  readonly written: number;
  readonly removed: number;
}

/**
 * Brings the lake in `directory` up to what is stored: of each dataset a file a month, sorted by project, day and path,
 * written anew only if a row of the month has changed. Readers of the manifest see one state or the other, wherever
 * this ends; what is left over, the next publish removes.
 *
 * Throws a `ConfigurationError` when the directory is no lake of this workspace, a `StorageError` when writing fails;
 * the state committed before still stands.
 */
export async function publishLake(
  warehouse: Warehouse,
  { directory, shard, signal }: LakeOptions,
): Promise<LakeChange> {
  const lake = await LakeDirectory.open(directory, shard);
  try {
    return await warehouse.exclusive((connection) => bringUp(lake, connection, shard, signal));
  } catch (cause) {
    await lake.sweep().catch(() => undefined);
    if (cause instanceof StorageError) throw cause;
    throw new StorageError(
      `Cannot publish the lake ${directory}: ${messageOf(cause)}. What was committed before still stands. ` +
        `Check the disk's free space and permissions; the next publish goes on`,
      { cause },
    );
  }
}

async function bringUp(
  lake: LakeDirectory,
  connection: DuckDBConnection,
  shard: Shard | undefined,
  signal: AbortSignal,
): Promise<LakeChange> {
  const committed = await lake.sweep();
  const before = new Set(committed === undefined ? [] : filesOf(committed));
  const parts = await storedParts(connection, shard);
  const toWrite: Part[] = [];
  for (const part of parts) if (!before.has(part.file) || !(await isThere(lake, part))) toWrite.push(part);
  const files = new Set(parts.map(({ file }) => file));
  const replaced = [...before].filter((file) => !files.has(file));
  const change = { files: files.size, written: toWrite.length, removed: replaced.length };
  if (committed !== undefined && toWrite.length + replaced.length === 0) return change;

  const of = (name: (typeof DATASETS)[number]) =>
    parts.flatMap(({ dataset, file, rows }) => (dataset === name ? { file, rows } : []));
  await lake.announce({ version: 1, views: of('views'), days: of('days'), replaced });
  for (const part of toWrite) {
    signal.throwIfAborted();
    await stage(lake, connection, part);
  }
  await lake.commit(toWrite.map(({ file }) => file));
  await lake.sweep();
  return change;
}

/** The files that say all that is stored of the shard's projects. */
async function storedParts(connection: DuckDBConnection, shard: Shard | undefined): Promise<Part[]> {
  const stored = await queryRows(connection, STORED_PROJECTS, projectRow);
  const projects = stored.flatMap(({ project }) => (isInShard(project, shard) ? quoted(project) : []));
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE lake_projects AS SELECT unnest([${projects.join()}]::VARCHAR[]) AS project`,
  );
  for (const dataset of DATASETS) await connection.run(readSql(import.meta.url, `${dataset}.sql`));
  const months = await queryRows(connection, MONTHS, monthRow);
  return months.map((row) => {
    const { dataset, month, digest } = row;
    return { ...row, file: `${dataset}/month=${month}/${shardName(shard)}-${digest}.parquet` };
  });
}

const isThere = (lake: LakeDirectory, { file }: Part): Promise<boolean> => exists(lake.final(file));

async function stage(
  lake: LakeDirectory,
  connection: DuckDBConnection,
  { dataset, month, file }: Part,
): Promise<void> {
  const target = lake.staged(file);
  const first = `'${month}-01'::DATE`;
  const rows = `FROM lake_${dataset} WHERE day BETWEEN ${first} AND last_day(${first}) ORDER BY ALL`;
  await connection.run(
    `COPY (${rows}) TO ${quoted(target)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
  );
  await syncToDisk(target);
}
