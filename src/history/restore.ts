import { copyFile, link } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf, ReadershipError, SchemaError, StorageError } from '../errors.js';
import { exists } from '../files.js';
import { machineAdvice, storageFailure } from '../storage.js';
import { isOfSqlite, literal, queryRows, type Row, rowSchema, withConnection } from './duckdb.js';
import { type CarriedState, readCarriedState } from './state-copy.js';
import { describe, writerOf } from './schema.js';
import { writeNext } from './write.js';
import { EMPTY_HISTORY, expectNoLog } from './history.js';
import { readSql } from '../columns.js';

export const OTHER_FILE = 'Nothing was changed. Use another file: readership restore --from FILE';

/** What a file to restore from is: a history with the state that it carries, or a database of Readership 0.4. */
type Source = { readonly is: 'history'; readonly state: CarriedState | undefined } | { readonly is: '0.4' };

/** Looks at a file to restore from. Throws a `StorageError` if it cannot be one. */
export const readSource = (path: string): Promise<Source> =>
  withConnection(async (connection): Promise<Source> => {
    await connection.run(`ATTACH ${literal(path)} AS source (READ_ONLY)`);
    await connection.run('USE source');
    const writer = await writerOf(connection, path);
    if (writer === '0.4') return { is: '0.4' };
    if (writer === 'another program')
      throw new SchemaError(
        `${path} is not a history of Readership: another program wrote it. ${OTHER_FILE}`,
      );
    await expectNoLog(path);
    return { is: 'history', state: await readCarriedState(connection) };
  }).catch((cause: unknown) => {
    throw notRestored(path, cause);
  });

/** Reads every value, because a file with damaged pages may still open. */
const READ_ALL = 'SELECT sum(human), sum(ai), sum(total), sum(hash(path, page)::HUGEINT) FROM page_views';

/**
 * Replaces the history at `path` by the one at `source`, and keeps the last one under the name `aside`. Throws a
 * `StorageError`, with nothing changed, if it is damaged. Calls `onReady` when only the renaming is left to do.
 */
export async function restoreHistory(
  path: string,
  source: string,
  aside: string,
  onReady: () => Promise<void>,
): Promise<void> {
  try {
    await writeNext(path, {
      source,
      change: async (connection) => {
        await connection.run(READ_ALL);
        await describe(connection);
      },
      beforeRename: async () => {
        await onReady();
        if (await exists(path)) await link(path, aside).catch(() => copyFile(path, aside));
      },
    });
  } catch (cause) {
    throw notRestored(source, cause);
  }
}

function notRestored(source: string, cause: unknown): unknown {
  if (isOfSqlite(cause))
    return new StorageError(
      `${source} is a file of SQLite, as a state is, and not a history. Nothing was changed. ` +
        'A history carries the state as well: readership restore --from FILE, with a history.duckdb',
    );
  if (cause instanceof ReadershipError && !(cause instanceof StorageError && cause.cause !== undefined))
    return cause;
  if (machineAdvice(cause) !== undefined) return storageFailure(`restore from ${source}`, cause);
  return new StorageError(`Cannot restore from ${source}: ${messageOf(cause)}\n${OTHER_FILE}`, { cause });
}

/** The tables of the state, each after those it refers to. */
const TABLES_OF_04 = [
  'workspace',
  'jobs',
  'messages',
  'job_changes',
  'pull_requests',
  'prompt_pauses',
  'choices',
  'skips',
  'emails',
  'notes',
  'runs',
  'day_failures',
  'platform_facts',
  'verifications',
] as const;

/** What a database of Readership 0.4 has for the state: the rows of its tables. */
type StateOf04 = ReadonlyMap<string, readonly Row[]>;

/** Reads what the state is made of. Throws DuckDB's error while Readership 0.4 has the database open. */
export const readStateOf04 = (path: string): Promise<StateOf04> =>
  withConnection(async (connection) => {
    await attach(connection, path);
    await connection.run('USE old');
    const tables = new Map<string, Row[]>();
    for (const table of TABLES_OF_04)
      tables.set(
        table,
        await queryRows(connection, readSql(import.meta.url, `from-0.4/${table}.sql`), rowSchema),
      );
    return tables;
  });

/** Writes the history of such a database to `path`, and keeps what is there under the name `aside`. */
export async function writeHistoryOf04(path: string, source: string, aside: string): Promise<void> {
  await writeNext(path, {
    source: EMPTY_HISTORY,
    change: async (connection) => {
      await connection.run(readSql(import.meta.url, 'from-0.4/tables.sql'));
      await describe(connection);
    },
    prepare: (connection) => attach(connection, source),
    beforeRename: async () => {
      if ((await exists(path)) && !(await exists(aside))) await link(path, aside);
    },
  });
}

/** The log that 0.4 had not yet made part of its file is read too. */
async function attach(connection: DuckDBConnection, path: string): Promise<void> {
  await connection.run(`ATTACH ${literal(path)} AS old (READ_ONLY)`);
}
