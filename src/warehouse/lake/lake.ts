import { ConfigurationError } from '../../errors.js';
import { recordLake, rememberLake } from '../identity.js';
import type { Warehouse } from '../warehouse.js';
import { isForeign, type LakeFile, monthNameOf, type Publication, TABLES } from './actions.js';
import { inspect, type Month, namesOf, remember, storedMonths, writeMonth, writeOthers } from './months.js';
import { daysOf, type LakeOptions, withLake } from './opened.js';
import type { LakeStorage } from './storage.js';
import { LakeTable } from './table.js';

/** How many files this publisher has in the lake, how many it wrote and replaced, and how much it transferred. */
export type LakeChange = Record<'files' | 'written' | 'replaced', number> &
  LakeStorage['traffic'] & {
    /** The months that another program had changed, and that were written again. */
    readonly rebuilt: readonly string[];
  };

/**
 * Brings the lake up to date. A month's files are written again only if one of its rows has changed,
 * or differs from the database because another program changed it. Each table changes in one commit,
 * so readers see either the old or the new state, even after a crash. A later publish removes
 * leftovers.
 *
 * Throws a `ConfigurationError` if the location is not a lake of this workspace, a `LakeAwayError` if
 * its store does not respond, and a `StorageError` if it is missing or writing fails. Earlier commits
 * remain.
 */
export const publishLake = (warehouse: Warehouse, options: LakeOptions): Promise<LakeChange> =>
  withLake(warehouse, options, async (work) => {
    await work.storage.expectConditions();
    const change = await updateTables(work);
    await recordLake(work.connection, options.place.location);
    return change;
  });

/**
 * Throws an `ElsewhereError` if another copy of the workspace, or a later state of this one, has
 * published to the lake. Creates a new lake, so that what is published from now on, such as the
 * history, knows it.
 */
export const prepareLake = (warehouse: Warehouse, options: LakeOptions): Promise<void> =>
  withLake(warehouse, options, async (work) => {
    const days = await daysOf(work);
    if (days.version >= 0) {
      days.expectLatest();
      return;
    }
    await work.storage.expectConditions();
    await createTables(work);
  });

/** Creates the tables that do not exist, before any data, to claim the location for this workspace. */
async function createTables(work: Publication): Promise<LakeTable[]> {
  const { existing, connection } = work;
  const { location } = work.place;
  const paths = [...existing.keys()];
  const isLake = paths.some((path) => path.startsWith('views/_delta_log/'));
  const stranger = paths.find((path) => !path.startsWith('_staged'));
  if (!isLake && stranger !== undefined)
    throw new ConfigurationError(
      `${location} is neither empty nor a Readership lake: it contains ${stranger}. Nothing in it was changed. Use an empty or new location.`,
    );
  if (!isLake) expectReadableName(location);
  await daysOf(work);
  const tables = TABLES.map((name) => new LakeTable(work, name));
  for (const table of tables) await table.create();
  await rememberLake(connection, location);
  return tables;
}

async function updateTables(work: Publication): Promise<LakeChange> {
  const { storage, now } = work;
  const { location, keepReplacedMs } = work.place;
  const months = await storedMonths(work);
  const tables = await createTables(work);
  const held = tables.flatMap(({ files }) => files).length;
  if (months.length === 0 && held > 0)
    throw new ConfigurationError(
      `The database has no days, and the lake ${location} has ${held} files of this workspace. Nothing in it was changed. ` +
        `Restore the database first: readership restore --from ${location}. To empty the lake, remove it.`,
    );
  const change = { files: 0, written: 0, replaced: 0 };
  const rebuilt = new Set<string>();
  for (const table of tables) {
    await table.vacuum(now.getTime() - keepReplacedMs);
    const ofTable = months.filter(({ dataset }) => dataset === table.name);
    const plan = await updateTable(work, table, ofTable);
    change.files += table.files.length;
    change.written += plan.added.length;
    change.replaced += plan.removed.length;
    for (const month of plan.rebuilt) rebuilt.add(month);
  }
  return { ...change, ...storage.traffic, rebuilt: [...rebuilt].sort() };
}

/** Throws a `ConfigurationError` for a new lake whose name some engines read as another, or as a partition. */
function expectReadableName(location: string): void {
  const odd = /[^\w./\\:+,;&@~'()-]/u.exec(location)?.[0];
  if (odd !== undefined)
    throw new ConfigurationError(
      `The lake ${location} was not created: not every program can read a lake whose address contains “${odd}”. ` +
        'Use another place, named with letters, digits, hyphens and underscores.',
    );
}

/** The changes to a table. */
interface Plan {
  readonly added: LakeFile[];
  readonly removed: LakeFile[];
  /** The months that another program had changed. */
  readonly rebuilt: string[];
}

/** Replaces the months that changed, that lost a file, or whose rows another program changed, in one commit. */
async function updateTable(work: Publication, table: LakeTable, months: readonly Month[]): Promise<Plan> {
  const once = new Map<string, Promise<LakeFile[]>>();
  /** A commit that another publisher preempts is planned again, but nothing is written twice. */
  const written = (key: string, write: () => Promise<LakeFile[]>): Promise<LakeFile[]> => {
    const files = once.get(key) ?? write();
    once.set(key, files);
    return files;
  };
  let plan: Plan = { added: [], removed: [], rebuilt: [] };
  let isCommitted = false;
  const removal = { extendedFileMetadata: true, deletionTimestamp: work.now.getTime(), dataChange: true };
  await table.commit(async () => {
    // Nothing is left to commit if an earlier attempt succeeded and only its reply was lost.
    if (isCommitted && plan.added.every(({ path }) => table.has(path))) return [];
    plan = await planTable(work, table, months, written);
    isCommitted = plan.added.length > 0;
    return [
      ...plan.removed.map(({ path, partitionValues, size }) => ({
        remove: { path, partitionValues, size, ...removal },
      })),
      ...plan.added.map((add) => ({ add })),
    ];
  });
  for (const month of months) {
    const names = namesOf(table.files.filter((file) => monthOf(file) === month.month));
    if (names !== month.files) await remember(work, { ...month, files: names });
  }
  return plan;
}

const monthOf = ({ path, partitionValues }: LakeFile): string =>
  partitionValues?.['month'] ?? /^month=([^/]*)/.exec(path)?.[1] ?? '';

async function planTable(
  work: Publication,
  table: LakeTable,
  months: readonly Month[],
  written: (key: string, write: () => Promise<LakeFile[]>) => Promise<LakeFile[]>,
): Promise<Plan> {
  const plan: Plan = { added: [], removed: [], rebuilt: [] };
  const names = new Set([...months.map(({ month }) => month), ...table.files.map(monthOf)]);
  for (const name of names) {
    work.signal.throwIfAborted();
    const month = months.find((one) => one.month === name);
    const files = table.files.filter((file) => monthOf(file) === name);
    const isUntouched = namesOf(files) === month?.files;
    const hasForeign = files.some(({ path }) => isForeign(path));
    const isWhole = files.every(
      ({ path }) => monthNameOf(path) === month?.name && work.existing.has(`${table.name}/${path}`),
    );
    if (!hasForeign && isWhole && files.length > 0 === (month !== undefined) && work.isRebuild !== true)
      continue;
    const found = hasForeign ? await inspect(work, table.name, files, month?.digest ?? '') : undefined;
    if (found?.isSame === true && work.isRebuild !== true) continue;
    const removed = found?.holding ?? files;
    if (removed.length === 0 && month === undefined) continue;
    plan.removed.push(...removed);
    const others = removed.filter(({ path }) => isForeign(path));
    const key = `${name} ${namesOf(others)}`;
    plan.added.push(...(await written(key, () => writeOthers(work, table.name, name, others))));
    if (month) plan.added.push(...(await written(month.name, () => writeMonth(work, month))));
    if (hasForeign || (month?.files != null && !isUntouched)) plan.rebuilt.push(name);
  }
  return plan;
}
