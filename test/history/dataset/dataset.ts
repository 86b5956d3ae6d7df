import { readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Parts } from '../../../src/steps/step.js';
import { type Dataset, datasetVersion, publishDataset } from '../../../src/history/dataset.js';
import type { Reader } from '../../../src/history/duckdb.js';
import type { HistoryStore } from '../../../src/history/store.js';
import { answerOf } from '../../duckdb.js';
import { rowsOf } from '../../open-history.js';
import { finishedDataset } from '../../../src/state/workspace.js';

/** A dataset of these projects. */
export const datasetIn = (location: string, projects: readonly string[] = ['prj_a', 'prj_b']): Dataset => ({
  location,
  projects: projects.map((id) => ({ id })),
});

/** Publishes to a directory, which is created if it is missing. */
export const publishTo = (
  history: HistoryStore,
  dataset: Dataset,
  { isWhole = false, signal = new AbortController().signal } = {},
) => publishDataset(history, dataset, { isWhole, mayCreate: true, signal });

const quoted = (path: string): string => `'${path.replaceAll("'", "''")}'`;

/** The rows of a file, or of all files that a pattern matches, in the order in which they are stored. */
export const rowsOfFiles = (pattern: string, columns = '*') =>
  answerOf(
    ':memory:',
    "SET TimeZone = 'UTC'",
    `SELECT ${columns} FROM read_parquet(${quoted(pattern)}, hive_types_autocast = false)`,
  );

const VIEWS =
  'project, day::VARCHAR AS day, path, page, human::INT AS human, ai::INT AS ai, total::INT AS total';
const DAYS =
  'project, day::VARCHAR AS day, state, epoch_ms(loaded_at)::DOUBLE AS loaded_at, human::INT AS human, ai::INT AS ai, total::INT AS total, pages::INT AS pages';

const sorted = (rows: readonly unknown[]): string[] => rows.map((row) => JSON.stringify(row)).sort();

/** Every row of a dataset, as another program reads it. */
export async function datasetRows(directory: string): Promise<{ views: string[]; days: string[] }> {
  const views = await rowsOfFiles(join(directory, 'views/*/*/views.parquet'), VIEWS);
  const days = await rowsOfFiles(join(directory, 'days/*/days.parquet'), DAYS);
  return { views: sorted(views), days: sorted(days) };
}

/** Every row of the history, in the same form. */
export async function historyRows(reader: Reader): Promise<{ views: string[]; days: string[] }> {
  const views = await rowsOf(reader, `SELECT ${VIEWS} FROM page_views`);
  const days = await rowsOf(reader, `SELECT ${DAYS} FROM days`);
  return { views: sorted(views), days: sorted(days) };
}

/** What shows whether the files of a directory were touched, by their paths in it. */
export async function stampsOf(directory: string): Promise<Map<string, string>> {
  const stamps = new Map<string, string>();
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const { mtimeNs, ino, size } = await stat(file, { bigint: true });
    stamps.set(relative(directory, file), [mtimeNs, ino, size].join());
  }
  return stamps;
}

/** The paths of files that were added, replaced or removed between two looks at a directory. */
export const differingPaths = (
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .sort();

/** Whether the dataset has what is stored, and its command succeeded. */
export async function isDatasetFinished({ workspace: { dataset }, state, store }: Parts): Promise<boolean> {
  if (dataset === undefined) throw new Error('there is no dataset');
  return (await datasetVersion(store, dataset, dataset.then?.command)) === finishedDataset(state);
}
