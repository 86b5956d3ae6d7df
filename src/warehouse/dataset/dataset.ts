import type { DuckDBConnection } from '@duckdb/node-api';
import pLimit from 'p-limit';
import pMap from 'p-map';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { isLocal } from '../../config/values.js';
import { ReadershipError } from '../../errors.js';
import { type Reader, readerOf, readSql, runStatement } from '../query.js';
import type { Warehouse } from '../warehouse.js';
import { areOwn, type Folders, ofOthers, readFolders, updateFolders, type FolderWriter } from './folders.js';
import { monthRow, type StoredMonth, versionOf } from './plan.js';
import { datasetError, type DatasetPlace, type DatasetStore, diskError, DiskStore } from './store.js';

const MONTHS = readSql(import.meta.url, 'months.sql');
const REMEMBER_PLACE =
  'UPDATE workspace SET dataset_places = list_distinct(list_append(dataset_places, $location))';

/** Of projects, because a bucket takes its time to answer. */
const AT_ONCE = { concurrency: 8 };

/** What is published to a dataset: the history of these projects of a workspace. */
export interface DatasetOptions {
  readonly place: DatasetPlace;
  readonly projects: readonly { readonly id: string }[];
  /** Whether to write every file again. */
  readonly isWhole?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** How many files these projects have in the dataset, and how many of them were written and removed. */
export type DatasetChange = Readonly<Record<'files' | 'written' | 'removed', number>>;

/** Whether the dataset has what is stored, as far as the database knows: the dataset itself is not read. */
export async function isDatasetCurrent(
  reader: Reader,
  { place, projects }: Pick<DatasetOptions, 'place' | 'projects'>,
): Promise<boolean> {
  const { dataset } = await readWorkspace(reader);
  return dataset === versionOf(place.location, await storedMonths(reader, projects));
}

/** Lets the next publication look at the dataset, which may be that of a later state of the database. */
export const forgetDataset = (warehouse: Warehouse): Promise<void> =>
  warehouse.exclusive((connection) => setDataset(connection, null));

async function setDataset(connection: DuckDBConnection, dataset: string | null): Promise<void> {
  await runStatement(connection, 'UPDATE workspace SET dataset = $dataset', { dataset });
}

/** The workspace that a database belongs to, which every command that writes records when it opens it. */
async function readWorkspace(reader: Reader) {
  const row = z.object({
    id: z.string(),
    dataset: z.string().nullable(),
    dataset_places: z.array(z.string()),
  });
  return z
    .tuple([row])
    .parse(await reader.query('SELECT id, dataset, dataset_places FROM workspace', row))[0];
}

/** The months of those projects that have any. */
async function storedMonths(reader: Reader, projects: DatasetOptions['projects']): Promise<StoredMonth[]> {
  const ids = new Set(projects.map(({ id }) => id));
  return (await reader.query(MONTHS, monthRow)).filter(({ project }) => ids.has(project));
}

/**
 * Brings the dataset up to date. Only the months with a changed day are written, or all if `isWhole`. Each file replaces
 * the one before it in one step, so that a reader sees one of the two, and whole.
 *
 * Throws a `DatasetError` if the place cannot be used. If another workspace has the folders of a project, it throws after
 * it has updated those of the other projects.
 */
export const publishDataset = (warehouse: Warehouse, options: DatasetOptions): Promise<DatasetChange> =>
  withDataset(warehouse, options, async ({ store, connection, workspace, months, own, others }) => {
    const { place, isWhole = false, signal } = options;
    await store.clear();
    try {
      const { location } = place;
      const writer = { store, location, connection, workspace, isWhole, signal, inTurn: pLimit(1) };
      const change = await updateAll(writer, own, months);
      if (own.length > 0) await runStatement(connection, REMEMBER_PLACE, { location: place.location });
      if (others.length > 0) throw ofOthers(others, place.location);
      await setDataset(connection, versionOf(place.location, months));
      return change;
    } finally {
      await store.clear().catch(() => undefined);
    }
  });

/** Throws a `DatasetError` if the dataset could not be published, as far as that can be seen without writing to it. */
export const examineDataset = (warehouse: Warehouse, options: DatasetOptions): Promise<void> =>
  withDataset(warehouse, options, ({ others }) => {
    if (others.length > 0) throw ofOthers(others, options.place.location);
    return Promise.resolve();
  });

/** A dataset, and what is to be there. */
interface Dataset extends Pick<FolderWriter, 'store' | 'connection' | 'workspace'> {
  readonly months: readonly StoredMonth[];
  /** The folders of the projects, and those of them that another workspace has. */
  readonly own: readonly Folders[];
  readonly others: readonly Folders[];
}

/** Runs `use` with the dataset as it is now, while nothing else uses the database. */
const withDataset = <Result>(
  warehouse: Warehouse,
  { place, projects, isWhole = false, signal }: DatasetOptions,
  use: (dataset: Dataset) => Promise<Result>,
): Promise<Result> =>
  warehouse.exclusive(async (connection) => {
    const reader = readerOf(connection);
    const { id: workspace, dataset_places: places } = await readWorkspace(reader);
    try {
      const store = isLocal(place.location)
        ? new DiskStore(place.location)
        : await openBucket(place, join(dirname(warehouse.path), 'dataset-upload'), signal);
      await expectNoDeltaTable(store, place);
      const months = await storedMonths(reader, projects);
      const ids = [...new Set(months.map(({ project }) => project))];
      const folders = await pMap(ids, (id) => readFolders(store, id), AT_ONCE);
      const own = folders.filter((one) => areOwn(one, workspace));
      const others = folders.filter((one) => !own.includes(one));
      if (!isWhole && places.includes(place.location)) await expectNotEmpty(store, place, folders);
      return await use({ store, connection, workspace, months, own, others });
    } catch (cause) {
      if (cause instanceof ReadershipError || signal.aborted) throw cause;
      throw diskError(place.location, cause);
    }
  });

/** Updates some projects at once. After a failure it begins no other, and waits for those that use the connection. */
async function updateAll(
  writer: FolderWriter,
  own: readonly Folders[],
  months: readonly StoredMonth[],
): Promise<DatasetChange> {
  const sum = { files: 0, written: 0, removed: 0 };
  const failures: unknown[] = [];
  const update = async (folders: Folders): Promise<void> => {
    if (failures.length > 0) return;
    const ofProject = months.filter(({ project }) => project === folders.project);
    const change = await updateFolders(writer, folders, ofProject);
    sum.files += change.files;
    sum.written += change.written;
    sum.removed += change.removed;
  };
  await pMap(own, (one) => update(one).catch((error: unknown) => failures.push(error)), AT_ONCE);
  if (failures.length > 0) throw failures[0];
  return sum;
}

/** A bucket, for which files are staged in a local directory. */
async function openBucket(place: DatasetPlace, staging: string, signal: AbortSignal): Promise<DatasetStore> {
  // The client warns that later versions need Node 22. The pinned version runs on Node 20.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
  // Loaded on demand, because it is slow to load and rarely needed.
  const { BucketStore } = await import('./bucket.js');
  return new BucketStore(place, staging, signal);
}

/** Throws a `DatasetError` where Readership 0.3 or another program has a Delta table: its log does not name our files. */
async function expectNoDeltaTable(store: DatasetStore, { location }: DatasetPlace): Promise<void> {
  for (const log of ['_delta_log', 'views/_delta_log', 'days/_delta_log'])
    if ((await store.list(log)).size > 0)
      throw datasetError(location, `it contains a Delta lake (${log})`, 'choose another place');
}

/** Throws a `DatasetError` if nothing is left of what was published to a place, as where its disk is not mounted. */
async function expectNotEmpty(
  store: DatasetStore,
  { location }: DatasetPlace,
  folders: readonly Folders[],
): Promise<void> {
  const isUnknown = folders.length > 0 && folders.every(({ known }) => known === undefined);
  if (isUnknown && (await store.list('days')).size === 0)
    throw datasetError(
      location,
      'the files that were published there are gone',
      'if it is on a disk that is not mounted, mount it, and otherwise write all of them again with: readership publish',
    );
}
