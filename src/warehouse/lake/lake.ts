import { shardOption } from '../../config/shard.js';
import { ConfigurationError } from '../../errors.js';
import { rememberLake, setWorkspace } from '../identity.js';
import type { Warehouse } from '../warehouse.js';
import {
  filesOf,
  isForeign,
  type Lake,
  type LakeFile,
  type LakeOptions,
  monthNameOf,
  pathInLake,
} from './actions.js';
import { hasRows, type Month, remember, storedMonths, writeMonth, writeOthers } from './months.js';
import { daysOf, withLake } from './opened.js';
import { expectLatest, expectOwn, expectWritable } from './rights.js';
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
  withLake(warehouse, options, async (lake) => {
    await lake.storage.expectConditions();
    const change = await updateTables(lake);
    await setWorkspace(lake.connection, { lake: options.place.location });
    return change;
  });

/**
 * Throws an `ElsewhereError` if another copy of the workspace, or a later state of this one, has
 * published to the lake. Creates a new lake, so that what is published from now on, such as the
 * history, knows it.
 */
export const prepareLake = (warehouse: Warehouse, options: LakeOptions): Promise<void> =>
  withLake(warehouse, options, async (lake) => {
    const days = await daysOf(lake);
    if (days.version >= 0) {
      expectLatest(days);
      return;
    }
    await lake.storage.expectConditions();
    await createTables(lake);
  });

/** Throws why the lake could not be published to, as far as that can be seen without writing to it. */
export const examineLake = (warehouse: Warehouse, options: LakeOptions): Promise<void> =>
  withLake(warehouse, options, async (lake) => {
    const days = await daysOf(lake);
    expectUsable(lake);
    for (const table of [await LakeTable.read(lake, 'views'), days]) {
      expectOwn(table);
      expectWritable(table);
    }
  });

/** Creates the tables that do not exist, before any data, to claim the location for this workspace. */
async function createTables(lake: Lake): Promise<LakeTable[]> {
  expectUsable(lake);
  const tables = [await LakeTable.read(lake, 'views'), await daysOf(lake)];
  for (const table of tables) await table.create();
  await rememberLake(lake.connection, lake.place.location);
  return tables;
}

/** Throws a `ConfigurationError` for a place that contains something else, or where no lake should be created. */
function expectUsable({ place: { location }, existing }: Lake): void {
  const paths = [...existing.keys()];
  if (paths.some((path) => path.startsWith('views/_delta_log/'))) return;
  const stranger = paths.find((path) => !path.startsWith('_staged'));
  if (stranger !== undefined)
    throw new ConfigurationError(
      `${location} is neither empty nor a Readership lake: it contains ${stranger}. Nothing in it was changed. Use an empty or new location.`,
    );
  expectReadableName(location);
}

async function updateTables(lake: Lake): Promise<LakeChange> {
  const { storage, now, place, shard } = lake;
  const months = await storedMonths(lake);
  const tables = await createTables(lake);
  const held = tables.flatMap(filesOf).length;
  if (months.length === 0 && held > 0)
    throw new ConfigurationError(
      `The database has no days, and the lake ${place.location} has ${held} files of this workspace. Nothing in it was changed. ` +
        `Restore the database first: readership restore --from ${place.location}${shardOption(shard)}. To empty the lake, remove it.`,
    );
  const change = { files: 0, written: 0, replaced: 0 };
  const rebuilt = new Set<string>();
  for (const table of tables) {
    await table.vacuum(now.getTime() - place.keepReplacedMs);
    const ofTable = months.filter(({ dataset }) => dataset === table.name);
    const plan = await updateTable(table, ofTable);
    change.files += filesOf(table).length;
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
async function updateTable(table: LakeTable, months: readonly Month[]): Promise<Plan> {
  const { lake } = table;
  const removal = { extendedFileMetadata: true, deletionTimestamp: lake.now.getTime(), dataChange: true };
  const written = new Map<string, LakeFile[]>();
  let plan: Plan = { added: [], removed: [], rebuilt: [] };
  await table.commit(async () => {
    plan = await planTable(table, months, written);
    return [
      ...plan.removed.map(({ path, partitionValues, size }) => ({
        remove: { path, partitionValues, size, ...removal },
      })),
      ...plan.added.map((add) => ({ add })),
    ];
  });
  for (const month of months) {
    const files = namesOf(filesOf(table).filter((file) => monthOf(file) === month.month));
    if (!month.isInFiles || files !== month.files) await remember(lake, { ...month, files });
  }
  return plan;
}

const monthOf = ({ path, partitionValues }: LakeFile): string =>
  partitionValues?.['month'] ?? /^month=([^/]*)/.exec(path)?.[1] ?? '';

/** Identifies a set of files. */
const namesOf = (files: readonly LakeFile[]): string =>
  files
    .map(({ path }) => path)
    .sort()
    .join('\n');

/** A commit that another publisher preempts is planned again, but what is in `written` by then is not written twice. */
async function planTable(
  table: LakeTable,
  months: readonly Month[],
  written: Map<string, LakeFile[]>,
): Promise<Plan> {
  const { lake, name: dataset } = table;
  const plan: Plan = { added: [], removed: [], rebuilt: [] };
  for (const name of new Set([...months.map(({ month }) => month), ...filesOf(table).map(monthOf)])) {
    lake.signal.throwIfAborted();
    const month = months.find((one) => one.month === name);
    const files = filesOf(table).filter((file) => monthOf(file) === name);
    const foreign = files.filter(({ path }) => isForeign(path));
    const isComplete =
      files.length > 0 && files.every((file) => lake.existing.has(pathInLake(dataset, file)));
    const isCurrent =
      isComplete &&
      (files.every(({ path }) => monthNameOf(path) === month?.name) ||
        (month?.isInFiles === true && month.files === namesOf(files)) ||
        (foreign.length > 0 && (await hasRows(lake, dataset, files, month?.digest ?? ''))));
    if (isCurrent && lake.isRebuild !== true) continue;
    const key = [name, namesOf(foreign)].join('\n');
    const added = written.get(key) ?? [
      ...(await writeOthers(lake, { dataset, month: name }, foreign)),
      ...(month ? await writeMonth(lake, month) : []),
    ];
    written.set(key, added);
    plan.added.push(...added);
    plan.removed.push(...files);
    const isChanged = month?.files != null && month.files !== namesOf(files);
    if (foreign.length > 0 || isChanged) plan.rebuilt.push(name);
  }
  return plan;
}
