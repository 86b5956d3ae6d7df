import type { DuckDBConnection } from '@duckdb/node-api';
import { createHash } from 'node:crypto';
import { access, chmod, constants, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf, ReadershipError } from '../errors.js';
import { exists, ignoreMissing, makeDirectories, syncToDisk } from '../files.js';
import { filledIn, literal, type Reader, readerOf } from './duckdb.js';
import { readSql } from '../columns.js';
import type { HistoryStore } from './store.js';
import { storageFailure } from '../storage.js';

const DAYS = readSql(import.meta.url, 'dataset/days.sql');
const MONTHS = readSql(import.meta.url, 'dataset/months.sql');
const VIEWS = readSql(import.meta.url, 'dataset/views.sql');

const monthRow = z.object({ project: z.string(), month: z.string(), rows: z.int(), digest: z.string() });
type Month = z.infer<typeof monthRow>;

/** A dataset in a directory: the history of these projects as Parquet files. */
export interface Dataset {
  readonly location: string;
  readonly projects: readonly { readonly id: string }[];
}

/** How many files a dataset has, and how many of them were written and removed. */
export type DatasetChange = Readonly<Record<'files' | 'written' | 'removed', number>>;

/** Identifies what the dataset is to contain. Other days, another place and another `then` make another version. */
export async function datasetVersion(
  reader: Reader,
  dataset: Dataset,
  then: string | undefined,
): Promise<string> {
  const months = await storedMonths(reader, dataset);
  return createHash('sha256')
    .update(JSON.stringify([dataset.location, then, months]))
    .digest('hex');
}

/** Throws a `DatasetError` if the directory cannot be written, or is missing: its disk may not be mounted. */
export async function expectDataset({ location }: Dataset): Promise<void> {
  try {
    await access(location, constants.W_OK);
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw diskError(location, cause);
    throw new DatasetError(
      `The Parquet dataset ${location} is missing; if its disk is not mounted, mount it, and otherwise create it with: readership publish`,
      { cause },
    );
  }
}

interface PublicationOptions {
  readonly isWhole: boolean;
  /** Whether to create the directory if it is missing. With `isWhole`, it always is. */
  readonly mayCreate: boolean;
  readonly signal: AbortSignal;
}

/**
 * Writes the months with a changed day, or all if `isWhole`. Each file replaces the
 * one before it in one step, so that a reader sees one of the two, and whole. Throws a `DatasetError`.
 */
export const publishDataset = (
  history: HistoryStore,
  dataset: Dataset,
  options: PublicationOptions,
): Promise<DatasetChange> =>
  history.writingFiles(async (connection) => {
    const { location } = dataset;
    const { isWhole, mayCreate, signal } = options;
    const months = await storedMonths(readerOf(connection), dataset);
    const change = { files: 0, written: 0, removed: 0 };
    try {
      if (isWhole || mayCreate) makeDirectories(location, 0o700);
      await expectDataset(dataset);
      for (const { id } of dataset.projects) {
        const own = months.filter(({ project }) => project === id);
        if (own.length > 0) await publishProject(connection, { location, id, months: own, options, change });
      }
      return change;
    } catch (cause) {
      if (cause instanceof ReadershipError || signal.aborted) throw cause;
      throw diskError(location, cause);
    }
  });

/** A project in a dataset, with its months, and the change that its files are counted in. */
interface ProjectPublication {
  readonly location: string;
  readonly id: string;
  readonly months: readonly Month[];
  readonly options: PublicationOptions;
  readonly change: { -readonly [Name in keyof DatasetChange]: number };
}

async function publishProject(
  connection: DuckDBConnection,
  { location, id, months, options, change }: ProjectPublication,
): Promise<void> {
  const { isWhole, signal } = options;
  const views = join(location, 'views', folderOf(id));
  const daysFile = join(location, 'days', folderOf(id), 'days.parquet');
  const written = isWhole ? [] : await writtenMonths(connection, daysFile);
  const replace = async (file: string, rows: string): Promise<void> => {
    signal.throwIfAborted();
    await makeDirectory(dirname(file), location);
    change.files++;
    if (await replaceFile(connection, file, rows, isWhole)) change.written++;
  };
  const folders = new Set<string>();
  for (const { month, digest } of months.filter(({ rows }) => rows > 0)) {
    const folder = `month=${month}`;
    folders.add(folder);
    const file = join(views, folder, 'views.parquet');
    const isWritten = written.some((one) => one.month === month && one.digest === digest);
    if (isWritten && (await exists(file))) change.files++;
    else await replace(file, filledIn(VIEWS, { project: id, first: `${month}-01` }));
  }
  // Months that the history no longer has. Anything else there is not ours.
  for (const folder of (await readdir(views).catch(ignoreMissing)) ?? []) {
    const file = join(views, folder, 'views.parquet');
    if (!/^month=\d{4}-\d{2}$/.test(folder) || folders.has(folder) || !(await exists(file))) continue;
    await rm(file);
    change.removed++;
  }
  // Last, because it says which days the views were written from.
  await replace(daysFile, `SELECT * EXCLUDE (project) FROM (${DAYS}) WHERE project = ${literal(id)}`);
}

/** The months of those projects that have any. */
async function storedMonths(reader: Reader, { projects }: Dataset): Promise<Month[]> {
  const ids = new Set(projects.map(({ id }) => id));
  const months = await reader.query(`WITH days AS (${DAYS}) ${MONTHS}`, monthRow);
  return months.filter(({ project }) => ids.has(project));
}

/** The months that the views were last written from; none if the file is missing or damaged. */
async function writtenMonths(connection: DuckDBConnection, daysFile: string): Promise<Month[]> {
  const days = `SELECT '' AS project, * FROM read_parquet(${literal(daysFile)}, hive_partitioning = false)`;
  return readerOf(connection)
    .query(`WITH days AS (${days}) ${MONTHS}`, monthRow)
    .catch(() => []);
}

/** The folder of a project, named as Hive does: only ASCII characters are escaped. */
export function folderOf(project: string): string {
  const escaped = project.replace(/[^\w.\u0080-\u{10ffff}-]/gu, escapeCharacter);
  // Engines read these words as NULL.
  const isNull = /^(null|__hive_default_partition__)$/i.test(project);
  return `project=${isNull ? escaped.replace(/^./, escapeCharacter) : escaped}`;
}

const escapeCharacter = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** The dataset is not up to date; the next publication tries again. */
export class DatasetError extends ReadershipError {}

/** Writes a file beside the one that it replaces, unless it has the same bytes; returns whether it replaced it. */
async function replaceFile(
  connection: DuckDBConnection,
  file: string,
  rows: string,
  isAlways: boolean,
): Promise<boolean> {
  // Engines skip names that begin with a dot.
  const next = join(dirname(file), `.${basename(file)}.next`);
  try {
    await connection.run(
      `COPY (${rows}) TO ${literal(next)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
    );
    const last = isAlways ? undefined : await readFile(file).catch(ignoreMissing);
    if (last?.equals(await readFile(next)) === true) return false;
    await chmod(next, 0o644);
    await syncToDisk(next);
    await rename(next, file);
    await syncToDisk(dirname(file));
    return true;
  } finally {
    await rm(next, { force: true });
  }
}

/** The mode of the dataset's directory decides who has access; those in it get its mode, and are readable. */
async function makeDirectory(directory: string, location: string): Promise<void> {
  const first = makeDirectories(directory);
  if (first === undefined) return;
  const { mode } = await stat(location);
  for (let made = directory; made.startsWith(first); made = dirname(made)) {
    await chmod(made, (mode & 0o7777) | 0o555);
    await syncToDisk(dirname(made));
  }
}

const ADVICE = [
  [/ENOSPC|No space left|EDQUOT|Disk quota/, 'make room there'],
  [/EEXIST|ENOTDIR|Not a directory/, 'name a directory'],
  [/EACCES|EPERM|EROFS|Permission denied|Read-only/i, 'give this user write access there'],
] as const;

/** A failure of the disk. DuckDB's errors have no code, only the words of the system. */
function diskError(location: string, cause: unknown): ReadershipError {
  const why = messageOf(cause);
  const next = ADVICE.find(([sign]) => sign.test(why))?.[1];
  return next === undefined
    ? storageFailure(`publish the Parquet dataset ${location}`, cause)
    : new DatasetError(`The Parquet dataset ${location} is not up to date: ${why}; ${next}.`, { cause });
}
