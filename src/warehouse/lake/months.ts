import { z } from 'zod';
import { isInShard, shardName } from '../../config/shard.js';
import { exists } from '../../files.js';
import { quoted } from '../duckdb.js';
import { queryRows, readSql, runStatement } from '../query.js';
import { fileSchema, isForeign, type LakeFile, type Publication, type TableName, TABLES } from './actions.js';

const MONTHS = readSql(import.meta.url, 'months.sql');
const REMEMBER = readSql(import.meta.url, 'remember-month.sql');
const WRITTEN = readSql(import.meta.url, 'written.sql');

/** The columns whose bounds are in the log, where a time has milliseconds. */
const BOUNDED: Readonly<Record<TableName, string>> = {
  views: '*',
  days: "* REPLACE (strftime(make_timestamp(epoch_us(loaded_at)), '%Y-%m-%dT%H:%M:%S.%gZ') AS loaded_at)",
};

const projectRow = z.object({ project: z.string().nullable() });
const digestRow = z.object({ digest: z.string() });
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
}

/** What is hashed of a row. Load times are not, so that reloading an unchanged day does not rewrite its month. */
const HASHED: Readonly<Record<TableName, string>> = {
  views: 'hash(lake_views)',
  days: 'hash(project, day, state, human, ai, total, pages)',
};
const COLUMNS: Readonly<Record<TableName, string>> = {
  views:
    'project::VARCHAR AS project, day::DATE AS day, path::VARCHAR AS path, human::BIGINT AS human, ai::BIGINT AS ai, total::BIGINT AS total',
  days: 'project::VARCHAR AS project, day::DATE AS day, state::VARCHAR AS state, loaded_at, human::BIGINT AS human, ai::BIGINT AS ai, total::BIGINT AS total, pages::BIGINT AS pages',
};

/** The rows of Parquet files, as a relation with the columns and the name that those of the database have. */
const rowsOf = (dataset: TableName, copies: readonly string[]): string =>
  `(SELECT ${COLUMNS[dataset]} FROM read_parquet([${copies.map(quoted).join()}], hive_partitioning = false)) AS lake_${dataset}`;

async function digestOf({ connection }: Publication, dataset: TableName, rows: string): Promise<string> {
  const sql = `SELECT if(count(*) = 0, '', left(md5(count(*) || '-' || sum(hashed)), 16)) AS digest FROM (SELECT ${HASHED[dataset]} AS hashed FROM ${rows})`;
  const [row] = await queryRows(connection, sql, digestRow);
  return row?.digest ?? '';
}

const daysOf = (month: string): string => `day BETWEEN DATE '${month}-01' AND last_day(DATE '${month}-01')`;

/** Creates the table of the shard's projects among those that `source` has. */
export async function nameProjects(
  { connection, shard }: Pick<Publication, 'connection' | 'shard'>,
  source: string,
) {
  const found = await queryRows(connection, `SELECT DISTINCT project FROM ${source}`, projectRow);
  const own = found.flatMap(({ project }) =>
    project !== null && isInShard(project, shard) ? quoted(project) : [],
  );
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE lake_projects AS SELECT unnest([${own.join()}]::VARCHAR[]) AS project`,
  );
}

/**
 * The months of the shard's projects. Creates the temporary views that `writeMonth` reads. Reads
 * the rows only of months that may have changed.
 */
export async function storedMonths(work: Publication): Promise<Month[]> {
  const { connection, shard, now } = work;
  await nameProjects(work, 'day_loads');
  for (const name of TABLES) await connection.run(readSql(import.meta.url, `${name}.sql`));
  const months: Month[] = [];
  for (const row of await queryRows(connection, MONTHS, monthRow, { now })) {
    const { dataset, month } = row;
    const digest = row.digest ?? (await digestOf(work, dataset, `lake_${dataset} WHERE ${daysOf(month)}`));
    if (row.digest === null) await remember(work, { ...row, digest });
    if (digest !== '') months.push({ ...row, digest, name: `month=${month}/${shardName(shard)}-${digest}` });
  }
  return months;
}

/** Records the digest of a month, or the files in which it was found. */
export async function remember({ connection, now }: Publication, month: Omit<Month, 'name'>): Promise<void> {
  const { dataset, fingerprint, digest, files } = month;
  for (const sql of REMEMBER.split(';'))
    await runStatement(connection, sql, { dataset, month: month.month, fingerprint, digest, now, files });
}

/** Identifies a set of files. */
export const namesOf = (files: readonly LakeFile[]): string =>
  files
    .map(({ path }) => path)
    .sort()
    .join('\n');

/** What another program left of a month. */
export interface Found {
  /** Whether all rows of this publisher are as stored. */
  readonly isSame: boolean;
  /** Its files that hold rows of this publisher, or cannot be read. */
  readonly holding: readonly LakeFile[];
}

/** Reads the files of a month of which another program wrote at least one, and compares its rows with those stored. */
export async function inspect(
  work: Publication,
  dataset: TableName,
  files: readonly LakeFile[],
  digest: string,
): Promise<Found> {
  const { storage, connection, shard } = work;
  const [readable, holding]: [string[], LakeFile[]] = [[], []];
  let isComplete = true;
  for (const file of files) {
    const copy = await storage.localCopy(`${dataset}/${decodeURIComponent(file.path)}`);
    if (!(await exists(copy))) {
      isComplete = false;
      holding.push(file);
      continue;
    }
    const isHolding = async () => {
      const sql = `SELECT DISTINCT project FROM ${rowsOf(dataset, [copy])}`;
      const projects = await queryRows(connection, sql, projectRow);
      return projects.some(({ project }) => project === null || isInShard(project, shard));
    };
    if (!isForeign(file.path) || (await isHolding())) {
      holding.push(file);
      readable.push(copy);
    }
  }
  await nameProjects(work, readable.length === 0 ? 'day_loads' : rowsOf(dataset, readable));
  const own = shard === undefined ? '' : ' WHERE project IS NULL OR project IN (FROM lake_projects)';
  const found = readable.length === 0 ? '' : await digestOf(work, dataset, rowsOf(dataset, readable) + own);
  await nameProjects(work, 'day_loads');
  return { isSame: isComplete && found === digest, holding };
}

/** Writes a month, sorted by project, day and path, to files that are not part of the table yet. */
export const writeMonth = (work: Publication, { dataset, month, name }: Month): Promise<LakeFile[]> =>
  write(work, dataset, month, name, `lake_${dataset} WHERE ${daysOf(month)}`);

/** Writes the rows of other shards in files that another program wrote to files of their own. */
export async function writeOthers(
  work: Publication,
  dataset: TableName,
  month: string,
  files: readonly LakeFile[],
): Promise<LakeFile[]> {
  if (work.shard === undefined || files.length === 0) return [];
  const copies: string[] = [];
  for (const { path } of files) {
    const copy = await work.storage.localCopy(`${dataset}/${decodeURIComponent(path)}`);
    if (await exists(copy)) copies.push(copy);
  }
  if (copies.length === 0) return [];
  await nameProjects(work, rowsOf(dataset, copies));
  const others = `${rowsOf(dataset, copies)} WHERE project NOT IN (FROM lake_projects)`;
  const written = await write(work, dataset, month, `month=${month}/others`, others);
  await nameProjects(work, 'day_loads');
  return written;
}

async function write(
  work: Publication,
  dataset: TableName,
  month: string,
  name: string,
  rows: string,
): Promise<LakeFile[]> {
  const { storage, connection, now } = work;
  const directory = await storage.stage();
  const form = "FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '200MB'";
  await connection.run(`COPY (FROM ${rows} ORDER BY ALL) TO ${quoted(directory)} (${form})`);
  const files = `${directory.replace(/[*?[]/g, '[$&]')}/*.parquet`;
  const values = { files, name, month, time: now.getTime() };
  const sql = WRITTEN.replace('{columns}', BOUNDED[dataset]);
  const written = await queryRows(connection, sql, writtenRow, values);
  for (const { file, add } of written) await storage.put(file, `${dataset}/${add.path}`);
  return written.map(({ add }) => add);
}
