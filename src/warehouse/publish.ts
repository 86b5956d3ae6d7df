import type { DuckDBConnection } from '@duckdb/node-api';
import { chmod, constants, copyFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { READ_ONLY, syncToDisk } from '../files.js';
import {
  AttachError,
  databaseOf,
  identifier,
  literal,
  whileAttached,
  whileUsing,
  writeAttached,
} from './duckdb.js';
import { isOfDamage, storageFailure } from '../storage.js';
import { logOf, removeDatabase } from './live-file.js';
import { describeCopy } from './migrate.js';
import {
  dayColumn,
  inTransaction,
  queryRows,
  type Reader,
  readerOf,
  readSql,
  rowSchema,
  runStatement,
} from './query.js';
import type { Warehouse } from './warehouse.js';

const statement = (name: string) => readSql(import.meta.url, `statements/${name}.sql`);
const CHANGED_DAYS = statement('changed-days');
const DELETE_CHANGED_DAYS = statement('delete-changed-days');
const INSERT_CHANGED_DAYS = statement('insert-changed-days');
const MUST_BE_WHOLE = statement('must-be-whole');
const SMALL_TABLES = statement('small-tables');
const PARTS = statement('parts');
const INSERT_PART = statement('insert-part');
const SAME_VERSION = statement('same-version');

/** The latest outage of each step that ever failed: see `readOutages`. */
export const OUTAGES = statement('outages');

/**
 * What views show of the tables of which they do not show everything; null for nothing. `page_views` changes only with
 * `day_loads` or `restatements`.
 */
const BOOKKEEPING: Readonly<Record<string, string | null>> = {
  page_views: null,
  runs: null,
  request_uses: null,
  unfinished_pages: null,
  verifications: null,
  platform_facts: 'SELECT * EXCLUDE (found_at)',
  day_loads: 'SELECT * EXCLUDE (attempted_at, loaded_at, failures)',
  agent_jobs: 'SELECT * EXCLUDE (polls, next_poll_at)',
  pull_requests: 'SELECT * EXCLUDE (checked_at, next_check_at)',
  workspace: 'SELECT * EXCLUDE (dataset, dataset_places)',
};

/** The live database, or the published file that is attached to it. */
type Part = 'main' | 'publication';

/** What readers see of a database: a digest of each table, with the last outcome of each step, and the steps' outages. */
const visibleState = async (reader: Reader, part: Part, now: Date): Promise<unknown> => [
  await tableDigests(reader, part, {
    ...BOOKKEEPING,
    // Without any day, only the last successful export tells that there is none yet.
    runs: `SELECT step, arg_max(outcome, started_at), if(step = 'export' AND NOT EXISTS (FROM ${part}.day_loads), max(started_at) FILTER (outcome = 'done'), NULL) WHERE step <> 'publish' GROUP BY step`,
  }),
  await reader.query(
    `WITH runs AS (FROM ${part}.runs) SELECT step, since FROM (${OUTAGES}) WHERE over_at IS NULL ORDER BY step`,
    rowSchema,
    { now },
  ),
];

/** A digest of the rows of each table, in any order; of the tables in `counting`, only of what that selects. */
export async function tableDigests(
  reader: Reader,
  part: Part,
  counting: typeof BOOKKEEPING = {},
): Promise<Readonly<Record<string, string>>> {
  const digests = (await tablesOf(reader, part)).flatMap((table) => {
    const counts = counting[table];
    if (counts === null) return [];
    return `SELECT ${literal(table)} AS name, count(*) || ' ' || coalesce(sum(hash(seen)::HUGEINT), 0) AS digest FROM (FROM ${part}.${identifier(table)} ${counts ?? ''}) AS seen`;
  });
  const rows = await reader.query(
    digests.join('\nUNION ALL\n'),
    z.object({ name: z.string(), digest: z.string() }),
  );
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}

/** The tables that hold data, without those that a user made in another schema. */
export async function tablesOf(reader: Reader, part: Part): Promise<string[]> {
  const rows = await reader.query(
    "SELECT table_name AS name FROM duckdb_tables() WHERE database_name = if($part = 'main', current_database(), $part) AND schema_name = 'main' AND table_name <> 'schema_version' ORDER BY name",
    z.object({ name: z.string() }),
    { part },
  );
  return rows.map(({ name }) => name);
}

/** Whether readers would see no difference between the live database and the file published from it. */
export async function isPublished(warehouse: Warehouse, target: string, now: Date): Promise<boolean> {
  try {
    return await withTargetAttached(warehouse, target, async (connection) => {
      const reader = readerOf(connection);
      const live = await visibleState(reader, 'main', now);
      return isDeepStrictEqual(live, await visibleState(reader, 'publication', now));
    });
  } catch (error) {
    throw storageFailure(`compare with ${target}`, error);
  }
}

/**
 * Publishes the history: a sorted, read-only copy of the whole live database that atomically
 * replaces the one at `target`. Readers that have the old copy open keep it; new readers get the
 * new one. Only the holder of the live database publishes, so the unfinished copy has a fixed name
 * and a stale one can be removed.
 *
 * The cost depends on what changed: the days and ledgers that differ are replaced in a copy of the
 * last publication. Occasionally, on request, and if there is no usable publication, everything is
 * written: first the live file with its rows sorted, which folds its log, and then a copy of it.
 *
 * Returns the size of the copy in bytes. After a `StorageError`, the previous copy remains.
 */
export async function publish(
  warehouse: Warehouse,
  target: string,
  { isWhole = false }: { readonly isWhole?: boolean } = {},
): Promise<number> {
  const unfinished = `${target}.publishing`;
  try {
    await removeDatabase(unfinished);
    const isUpdate = !isWhole && (await withTargetAttached(warehouse, target, canBeUpdated));
    // DuckDB locks neither the last publication nor the new live file yet, so copying them releases no lock.
    const copy = (file: string) => copyFile(file, unfinished, constants.COPYFILE_FICLONE);
    if (isUpdate) await copy(target);
    else await warehouse.rewrite(copySorted, copy);
    await chmod(unfinished, 0o600);
    await warehouse.exclusive((connection) =>
      writeAttached(connection, unfinished, 'publication', async () => {
        await whileUsing(connection, 'publication', () => describeCopy(connection));
        if (isUpdate) await update(connection);
      }),
    );
    await chmod(unfinished, READ_ONLY);
    await syncToDisk(unfinished);
    await rm(logOf(target), { force: true });
    await rename(unfinished, target);
    await syncToDisk(dirname(target));
    // Whatever is in its place, readers would meet it: better that this fails.
    await warehouse.exclusive((connection) => whileAttached(connection, target, 'publication', NOTHING));
    return (await stat(target)).size;
  } catch (cause) {
    await removeDatabase(unfinished).catch(() => undefined);
    // A damaged publication is replaced; the live database may be sound.
    if (!isWhole && isOfDamage(cause)) return publish(warehouse, target, { isWhole: true });
    warehouse.noteFailure(cause);
    throw storageFailure(`publish the history to ${target} (the previous one was kept)`, cause);
  }
}

const NOTHING = () => Promise.resolve();

/** Runs `compare` with the published file attached as `publication`; false if it is missing, unusable or from another version. */
const withTargetAttached = (
  warehouse: Warehouse,
  target: string,
  compare: (connection: DuckDBConnection) => Promise<boolean>,
): Promise<boolean> =>
  warehouse.exclusive(async (connection) => {
    try {
      return await whileAttached(connection, target, 'publication', async () => {
        const [version] = await queryRows(connection, SAME_VERSION, z.object({ is_same: z.boolean() }));
        return version?.is_same === true && (await compare(connection));
      });
    } catch (error) {
      if (error instanceof AttachError || isOfDamage(error)) return false;
      throw error;
    }
  });

/** Finds the days that changed; false if everything is to be written again. */
async function canBeUpdated(connection: DuckDBConnection): Promise<boolean> {
  await connection.run(CHANGED_DAYS);
  const [whole] = await queryRows(connection, MUST_BE_WHOLE, z.object({ must_be_whole: z.boolean() }));
  return whole?.must_be_whole === false;
}

/** The rows that DuckDB writes together. */
const ROW_GROUP = 122_880;

/** Sorting and inserting fewer rows takes about as long. */
const PART_ROWS = 2 * ROW_GROUP;

/**
 * Fills the empty database `next` with the tables, views and comments of the live one, and its rows, sorted: ledgers by
 * their columns from the left, views by quarter, page and day, in parts to save memory.
 */
async function copySorted(connection: DuckDBConnection): Promise<void> {
  const live = await databaseOf(connection);
  await connection.run(`COPY FROM DATABASE ${live} TO next (SCHEMA)`);
  const tables = await queryRows(connection, SMALL_TABLES, z.object({ name: z.string() }));
  const copies = tables.map(({ name }) => insertSorted(name, live, 'next'));
  await inTransaction(connection, async () => {
    await connection.run(copies.join(';'));
  });
  const parts = await queryRows(
    connection,
    PARTS,
    z.object({ project: z.string(), first: dayColumn, last: dayColumn }),
    { rows: PART_ROWS },
  );
  let unwritten = 0;
  for (const part of parts) {
    unwritten += (await runStatement(connection, INSERT_PART, part)).rowsChanged;
    if (unwritten < ROW_GROUP) continue;
    // The rows that do not fill a row group would stay in memory until the end.
    await connection.run('CHECKPOINT next');
    unwritten = 0;
  }
}

/** Replaces the days that `canBeUpdated` found and the ledgers that differ. */
async function update(connection: DuckDBConnection): Promise<void> {
  const reader = readerOf(connection);
  const ledgers = await tableDigests(reader, 'main', { page_views: null });
  const published = await tableDigests(reader, 'publication', { page_views: null });
  await inTransaction(connection, async () => {
    await connection.run(DELETE_CHANGED_DAYS);
    await connection.run(INSERT_CHANGED_DAYS);
    for (const [name, digest] of Object.entries(ledgers))
      if (digest !== published[name])
        await connection.run(
          `DELETE FROM publication.${identifier(name)}; ${insertSorted(identifier(name), 'main', 'publication')}`,
        );
  });
}

/** Copies a table's rows, sorted by its columns from the left. */
const insertSorted = (table: string, from: string, into: string): string =>
  `INSERT INTO ${into}.${table} FROM ${from}.${table} ORDER BY ALL`;
