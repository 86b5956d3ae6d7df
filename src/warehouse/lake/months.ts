import type { DuckDBConnection } from '@duckdb/node-api';
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { isInShard, type Shard, shardName } from '../../config/shard.js';
import { quoted } from '../instance.js';
import { queryRows, readSql } from '../query.js';
import { type LakeFile, TABLES } from './actions.js';
import type { Publication } from './ownership.js';

const STORED_PROJECTS = readSql(import.meta.url, 'stored-projects.sql');
const MONTHS = readSql(import.meta.url, 'months.sql');
const WRITTEN = readSql(import.meta.url, 'written.sql');

const monthRow = z.object({
  dataset: z.enum(TABLES),
  month: z.string().regex(/^\d{4}-\d{2}$/),
  digest: z.string(),
});
/** A month of a table, as it is stored now. */
export interface Month extends z.infer<typeof monthRow> {
  /** Begins the names of its files, and is another whenever a row changes. */
  readonly name: string;
}

const writtenRow = z.object({ file: z.string(), size: z.int(), stats: z.string() });

/** The months of the shard's projects. Makes the temporary views that `writeMonth` reads. */
export async function storedMonths(connection: DuckDBConnection, shard: Shard | undefined): Promise<Month[]> {
  const stored = await queryRows(connection, STORED_PROJECTS, z.object({ project: z.string() }));
  const projects = stored.flatMap(({ project }) => (isInShard(project, shard) ? quoted(project) : []));
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE lake_projects AS SELECT unnest([${projects.join()}]::VARCHAR[]) AS project`,
  );
  for (const name of TABLES) await connection.run(readSql(import.meta.url, `${name}.sql`));
  const months = await queryRows(connection, MONTHS, monthRow);
  return months.map((row) => ({ ...row, name: `month=${row.month}/${shardName(shard)}-${row.digest}` }));
}

/** Writes a month, sorted by project, day and path, to files that are not part of the table yet. */
export async function writeMonth(
  { storage, connection, now }: Publication,
  { dataset, month, name }: Month,
): Promise<LakeFile[]> {
  const directory = join(storage.staging, randomUUID());
  await mkdir(directory, { recursive: true });
  const first = `DATE '${month}-01'`;
  const rows = `FROM lake_${dataset} WHERE day BETWEEN ${first} AND last_day(${first}) ORDER BY ALL`;
  const form = "FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '200MB'";
  await connection.run(`COPY (${rows}) TO ${quoted(directory)} (${form})`);
  const added: LakeFile[] = [];
  const files = `${directory}/*.parquet`;
  for (const { file, size, stats } of await queryRows(connection, WRITTEN, writtenRow, { files })) {
    const path = `${name}-${randomUUID().slice(0, 8)}.parquet`;
    await storage.put(file, `${dataset}/${path}`);
    const times = { modificationTime: now.getTime(), dataChange: true };
    added.push({ path, partitionValues: { month }, size, stats, ...times });
  }
  return added;
}
