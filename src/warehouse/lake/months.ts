import { existsSync } from 'node:fs';
import pMap from 'p-map';
import { z } from 'zod';
import { shardName } from '../../config/shard.js';
import { literal } from '../duckdb.js';
import { queryRows, readSql, runStatement } from '../query.js';
import { fileSchema, type Lake, type LakeFile, pathInLake, type TableName, TABLES } from './actions.js';
import { AT_ONCE } from './storage.js';

const statement = (name: string): string => readSql(import.meta.url, `${name}.sql`);
const MONTHS = statement('months');
const REMEMBER = statement('remember-month');
const WRITTEN = statement('written');
const DIGEST = statement('digest');

/** The columns whose bounds are in the log, where a time has milliseconds. */
const BOUNDED: Readonly<Record<TableName, string>> = {
  views: '*',
  days: "* REPLACE (strftime(make_timestamp(epoch_us(loaded_at)), '%Y-%m-%dT%H:%M:%S.%gZ') AS loaded_at)",
};

const monthRow = z.object({
  dataset: z.enum(TABLES),
  month: z.string().regex(/^\d{4}-\d{2}$/),
  fingerprint: z.string(),
  digest: z.string().nullable(),
  /** The names of its files when its rows were last found in the lake. */
  files: z.string().nullable(),
});
const writtenRow = z.object({ file: z.string(), add: fileSchema });

/** A month of a table as stored in the database. */
export interface Month extends z.infer<typeof monthRow> {
  /** Digest of its rows, in any order; empty without rows. */
  readonly digest: string;
  /** Prefix of its file names, which changes whenever a row changes. */
  readonly name: string;
  /** Whether `files` had these rows; its rows may have changed since. */
  readonly isInFiles: boolean;
}

/** What is hashed of a row. Load times are not, so that reloading an unchanged day does not rewrite its month. */
const HASHED: Readonly<Record<TableName, string>> = {
  views: 'hash(lake_views)',
  days: 'hash(project, day, state, human, ai, total, pages)',
};

async function digestOf({ connection }: Lake, dataset: TableName, rows: string): Promise<string> {
  const sql = DIGEST.replace('{hashed}', HASHED[dataset]).replace('{rows}', () => rows);
  const [row] = await queryRows(connection, sql, z.object({ digest: z.string() }));
  return row?.digest ?? '';
}

/** The rows of a month in the database. */
const storedRows = ({ dataset, month }: Pick<Month, 'dataset' | 'month'>): string =>
  `lake_${dataset} WHERE day BETWEEN DATE '${month}-01' AND last_day(DATE '${month}-01')`;

/**
 * The months of the shard's projects. Creates the temporary views and macros that `writeMonth` and `writeOthers` read.
 * Reads the rows only of months that may have changed.
 */
export async function storedMonths(lake: Lake): Promise<Month[]> {
  const { connection, shard, now } = lake;
  for (const name of ['projects', 'views', 'days', 'views-in', 'days-in'])
    await connection.run(statement(name));
  const months: Month[] = [];
  for (const row of await queryRows(connection, MONTHS, monthRow, { now })) {
    const isInFiles = row.digest !== null;
    const digest = row.digest ?? (await digestOf(lake, row.dataset, storedRows(row)));
    const name = `month=${row.month}/${shardName(shard)}-${digest}`;
    if (digest !== '') months.push({ ...row, digest, name, isInFiles });
  }
  return months;
}

/** Records the digest of a month, and the files in which it was found. */
export async function remember(
  { connection, now }: Lake,
  month: Omit<Month, 'name' | 'isInFiles'>,
): Promise<void> {
  const { dataset, fingerprint, digest, files } = month;
  for (const sql of REMEMBER.split(';'))
    await runStatement(connection, sql, { dataset, month: month.month, fingerprint, digest, now, files });
}

/** Whether files, some of which another program wrote, have exactly the rows of a month that this shard has stored. */
export async function hasRows(
  lake: Lake,
  dataset: TableName,
  files: readonly LakeFile[],
  digest: string,
): Promise<boolean> {
  const rows = await rowsIn(lake, dataset, files);
  return (await digestOf(lake, dataset, `${rows} WHERE is_in_shard(project)`)) === digest;
}

/** The rows of those files that exist, as a relation with the columns and the name that those of the database have. */
async function rowsIn(lake: Lake, dataset: TableName, files: readonly LakeFile[]): Promise<string> {
  const copies = await pMap(files, (file) => lake.storage.localCopy(pathInLake(dataset, file)), AT_ONCE);
  const existing = copies.filter(existsSync).map(literal);
  return existing.length === 0 ? '' : `lake_${dataset}_in([${existing.join()}]) AS lake_${dataset}`;
}

/** Writes a month, sorted by project, day and path, to files that are not part of the table yet. */
export const writeMonth = (lake: Lake, month: Month): Promise<LakeFile[]> =>
  write(lake, month, month.name, storedRows(month));

/** Writes the rows of other shards in files that another program wrote to files of their own. */
export async function writeOthers(
  lake: Lake,
  month: Pick<Month, 'dataset' | 'month'>,
  files: readonly LakeFile[],
): Promise<LakeFile[]> {
  if (lake.shard === undefined) return [];
  const rows = await rowsIn(lake, month.dataset, files);
  if (rows === '') return [];
  return write(lake, month, `month=${month.month}/others`, `${rows} WHERE NOT is_in_shard(project)`);
}

async function write(
  lake: Lake,
  { dataset, month }: Pick<Month, 'dataset' | 'month'>,
  name: string,
  rows: string,
): Promise<LakeFile[]> {
  const { storage, connection, now } = lake;
  const directory = await storage.stage();
  const form = "FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '200MB'";
  await connection.run(`COPY (FROM ${rows} ORDER BY ALL) TO ${literal(directory)} (${form})`);
  const files = `${directory.replace(/[*?[]/g, '[$&]')}/*.parquet`;
  const values = { files, name, month, time: now.getTime() };
  const sql = WRITTEN.replace('{columns}', BOUNDED[dataset]);
  const written = await queryRows(connection, sql, writtenRow, values);
  for (const { file, add } of written) await storage.put(file, `${dataset}/${add.path}`);
  return written.map(({ add }) => add);
}
