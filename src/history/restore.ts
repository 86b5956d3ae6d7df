import { link, copyFile } from 'node:fs/promises';
import { messageOf, ReadershipError, StorageError } from '../errors.js';
import { exists } from '../files.js';
import { machineAdvice, storageFailure } from '../storage.js';
import { literal, withConnection } from './duckdb.js';
import { type CarriedState, readCarriedState } from './saved-state.js';
import { describe, expectSchema, isOf04 } from './schema.js';
import { writeNext } from './write.js';

export const OTHER_FILE = 'Nothing was changed. Use another file: readership restore --from FILE';

/** What a file to restore from is: a history with the state that it carries, or a database of Readership 0.4. */
export type Source =
  { readonly is: 'history'; readonly state: CarriedState | undefined } | { readonly is: '0.4' };

/** Looks at a file to restore from. Throws a `StorageError` if it cannot be one. */
export const readSource = (path: string): Promise<Source> =>
  withConnection(async (connection): Promise<Source> => {
    await connection.run(`ATTACH ${literal(path)} AS source (READ_ONLY)`);
    await connection.run('USE source');
    if (await isOf04(connection)) return { is: '0.4' };
    await expectSchema(connection, path);
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
      expectCurrent: async () => {
        await onReady();
        if (await exists(path)) await link(path, aside).catch(() => copyFile(path, aside));
      },
    });
  } catch (cause) {
    throw notRestored(source, cause);
  }
}

function notRestored(source: string, cause: unknown): unknown {
  if (cause instanceof ReadershipError && !(cause instanceof StorageError && cause.cause !== undefined))
    return cause;
  if (machineAdvice(cause) !== undefined) return storageFailure(`restore from ${source}`, cause);
  return new StorageError(`Cannot restore from ${source}: ${messageOf(cause)}\n${OTHER_FILE}`, { cause });
}
