import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { PageViews } from '../../../src/api/schema.js';
import { day as toDay, type Day } from '../../../src/day.js';
import { NO_VIEWS, sumCounts } from '../../../src/export/totals.js';
import { Rows } from '../../../src/export/day-rows.js';
import { storeDay } from '../../../src/export/ledger.js';
import type { Reader } from '../../../src/warehouse/query.js';
import type { LakeOptions } from '../../../src/warehouse/lake/actions.js';
import { fillFromLake } from '../../../src/warehouse/lake/copy.js';
import type { LakePlace } from '../../../src/warehouse/lake/storage.js';
import type { Shard } from '../../../src/config/shard.js';
import type { Place } from '../../../src/effects/place.js';
import type { Warehouse } from '../../../src/warehouse/warehouse.js';

export { row as page } from '../../export/moving-views.js';

/** A row of the views, in the order in which the lake sorts them. */
export type ViewRow = readonly [project: string, day: string, path: string, human: number, ai: number];

const NOW = new Date('2026-11-18T05:00:00Z');
/** The options of a publish to a directory. */
export const lakeOptions = (location: string, changes: Partial<LakeOptions> = {}): LakeOptions => ({
  place: { location, keepReplacedMs: 86_400_000, credentials: {} },
  ...{ shard: undefined, source: 'https://platform.example.com', now: new Date() },
  ...{ signal: new AbortController().signal, ...changes },
});

/** Fills a new database from a lake. */
export const fill = (warehouse: Warehouse, place: LakePlace, shard?: Shard, here?: Place): Promise<void> =>
  warehouse.exclusive((connection) =>
    fillFromLake(connection, warehouse.path, { place, shard, here, signal: new AbortController().signal }),
  );

/** Stores days as an export does: each replaces what was stored for it. */
export async function store(
  warehouse: Warehouse,
  project: string,
  days: Readonly<Record<string, readonly PageViews[]>>,
): Promise<void> {
  for (const [at, rows] of Object.entries(days))
    await storeLoaded(warehouse, { project, day: toDay(at), now: NOW }, rows, 'final');
}

type StoredDay = Parameters<typeof storeDay>;

/** Stores a day whose rows add up. */
export function storeLoaded(
  warehouse: Warehouse,
  on: StoredDay[1],
  rows: readonly PageViews[],
  state: StoredDay[3],
): ReturnType<typeof storeDay> {
  const walked = { totals: sumCounts(rows), rows: new Rows(rows), doubt: undefined, unattributed: NO_VIEWS };
  return storeDay(warehouse, on, walked, state);
}

const addSchema = z.object({ path: z.string(), size: z.int(), stats: z.string() });
const statsSchema = z.object({
  numRecords: z.int(),
  minValues: z.record(z.string(), z.string().or(z.int())),
  maxValues: z.record(z.string(), z.string().or(z.int())),
});
const entrySchema = z.object({
  add: addSchema.optional(),
  remove: z.object({ path: z.string() }).optional(),
});

/** The files of a table, according to its log from the first entry on, sorted by path. */
export async function tableFiles(directory: string, table: 'views' | 'days') {
  const log = join(directory, table, '_delta_log');
  const files = new Map<string, z.infer<typeof addSchema>>();
  for (const name of (await readdir(log)).filter((entry) => /^\d{20}\.json$/.test(entry)).sort())
    for (const line of (await readFile(join(log, name), 'utf8')).trim().split('\n')) {
      const { add, remove } = entrySchema.parse(JSON.parse(line));
      if (remove !== undefined) files.delete(remove.path);
      if (add !== undefined) files.set(add.path, add);
    }
  return [...files.values()]
    .map(({ path, size, stats }) => ({
      ...{ file: `${table}/${path}`, size },
      ...statsSchema.parse(JSON.parse(stats)),
    }))
    .sort((left, right) => (left.file < right.file ? -1 : 1));
}

/** The number of entries in the log of a table. */
export const commitsOf = async (directory: string, table: 'views' | 'days'): Promise<number> =>
  (await readdir(join(directory, table, '_delta_log'))).filter((name) => /^\d{20}\.json$/.test(name)).length;

/** The data files, by their path in the lake, whether or not a table names them. */
export const filesIn = async (directory: string): Promise<string[]> =>
  (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1))
    .filter((file) => !file.includes('_delta_log/') && !file.startsWith('_staged'))
    .sort();

/** The files that the tables name. */
export const namedFiles = async (directory: string): Promise<string[]> =>
  [...(await tableFiles(directory, 'days')), ...(await tableFiles(directory, 'views'))].map(
    ({ file }) => file,
  );

const viewSchema = z.object({
  project: z.string(),
  day: z.date().transform((at): Day => toDay(at.toISOString().slice(0, 10))),
  path: z.string(),
  human: z.bigint().transform(Number),
  ai: z.bigint().transform(Number),
  total: z.bigint().transform(Number),
});

/** The rows of a file, read by a Parquet library that shares no code with DuckDB. */
export async function rowsOfFile(directory: string, file: string): Promise<Record<string, unknown>[]> {
  return parquetReadObjects({ file: await asyncBufferFromFile(join(directory, file)), compressors });
}

export const metadataOf = async (directory: string, file: string) =>
  parquetMetadataAsync(await asyncBufferFromFile(join(directory, file)));

/** The views in the files that the lake's log names, in the order of its files. */
export async function lakeViews(directory: string): Promise<ViewRow[]> {
  const views = await tableFiles(directory, 'views');
  const rows = await Promise.all(views.map(({ file }) => rowsOfFile(directory, file)));
  return z
    .array(viewSchema)
    .parse(rows.flat())
    .map(({ project, day, path, human, ai }) => [project, day, path, human, ai]);
}

const storedRow = z.object({
  ...{ project: z.string(), day: z.string(), path: z.string(), human: z.int(), ai: z.int() },
});

/** The views of the database, in the order of a lake: by month, then project, day and path. */
export async function storedViews(reader: Reader): Promise<ViewRow[]> {
  const rows = await reader.query(
    "FROM page_views ORDER BY strftime(day, '%Y-%m'), project, day, path",
    storedRow,
  );
  return rows.map(({ project, day, path, human, ai }) => [project, day, path, human, ai]);
}

export const sorted = (rows: readonly ViewRow[]): ViewRow[] =>
  [...rows].sort((left, right) => (JSON.stringify(left) < JSON.stringify(right) ? -1 : 1));
