import { rename, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { SchemaError, StorageError } from '../errors.js';
import { exists, expectDirectory, ignoreMissing, makeDirectory } from '../files.js';
import {
  OTHER_FILE,
  readSource,
  readStateOf04,
  restoreHistory,
  writeHistoryOf04,
} from '../history/restore.js';
import type { CarriedState } from '../history/state-copy.js';
import { removeForeignLog } from '../history/write.js';
import { lockData } from '../state/lock.js';
import { openState } from '../state/open.js';
import { expectEveryAttempt, importState } from '../state/from-0.4.js';
import { findState, type FoundState, isToReplace, type RestoredState, writeState } from '../state/restore.js';
import { type LastAttempt, readWitness, writeWitness } from '../state/witness.js';
import { of04, storageFailure } from '../storage.js';
import { MAX_LOCK_WAIT_MS } from './open.js';
import type { Runtime, Workspace } from './workspace.js';

/** A history that was restored, and where the previous one is now; undefined if there was none. */
export interface RestoredHistory {
  readonly path: string;
  readonly source: string;
  readonly aside: string | undefined;
}

/** What was done to the history and to the state; undefined for one that was kept as it was. */
export interface RestoredStores {
  readonly history: RestoredHistory | undefined;
  readonly state: RestoredState | undefined;
}

type Interruptible = Pick<Runtime, 'now' | 'signal'>;

/**
 * Restores the history and the state it carries from another history, or the state from the history of the workspace, as
 * far as that knows more. Holds the worker's lock. Throws a `StorageError`, with nothing changed, if that is not possible.
 */
export async function restoreStores(
  workspace: Workspace,
  from: string | undefined,
  { onNotice, ...runtime }: Interruptible & { readonly onNotice: (words: string) => void },
): Promise<RestoredStores> {
  const { dataDir, historyFile } = workspace;
  await expectDirectory(dataDir);
  const source = await expectSource(historyFile, from);
  if (source === historyFile) await removeForeignLog(historyFile, onNotice);
  const found = await readSource(source);
  // What 0.4 published may be older than its database.
  if (found.is === '0.4' && source === historyFile)
    throw new SchemaError(of04(join(dataDir, 'warehouse.duckdb')));
  return whileLocked(dataDir, runtime, async () => {
    const current = await findState(dataDir);
    return found.is === '0.4'
      ? restoreFrom04(workspace, source, current)
      : replaceStores(workspace, source, found.state, current, runtime.now());
  });
}

/** Runs `work` while no other process works in a data directory. If it fails, a directory that was made for it goes. */
async function whileLocked<Result>(
  dataDir: string,
  { now, signal }: Interruptible,
  work: () => Promise<Result>,
): Promise<Result> {
  const made = await makeDirectory(dataDir);
  // If the state can be opened, it names a process that holds the lock.
  const state = await openState(dataDir).catch(() => undefined);
  const holder = { command: 'readership restore', maxWaitMs: MAX_LOCK_WAIT_MS, now, signal };
  const lock = await lockData(dataDir, state, holder).finally(() => state?.close());
  try {
    const result = await work();
    lock.release();
    return result;
  } catch (error) {
    if (made === undefined) lock.release();
    else {
      lock.remove();
      await removeEmpty(dataDir, made);
    }
    throw error;
  }
}

/** Removes a new directory and those around it, up to the first that was made, as far as they are empty. */
async function removeEmpty(directory: string, first: string): Promise<void> {
  await rmdir(directory).catch(() => undefined);
  if (directory !== first) await removeEmpty(dirname(directory), first);
}

/** Replaces the state, if the one that the source carries knows more, and then the history, unless that is the source. */
async function replaceStores(
  { dataDir, historyFile, witness }: Workspace,
  source: string,
  carried: CarriedState | undefined,
  current: FoundState,
  now: Date,
): Promise<RestoredStores> {
  if (carried === undefined && current.is !== 'sound')
    throw new StorageError(
      `${source} carries no state, and the one in ${dataDir} is ${current.is}. ${OTHER_FILE}`,
    );
  const isOlder = carried !== undefined && isToReplace(current, carried, { source, witness });
  const ready = isOlder ? writeState(dataDir, carried, source) : undefined;
  const stamp = now.toISOString().slice(0, 19).replaceAll(':', '-');
  let state: RestoredState | undefined;
  const putStateInPlace = async () => {
    state = await ready?.putInPlace(stamp);
  };
  try {
    // The history takes its place last: until then, the same command does all of it again.
    let history: RestoredHistory | undefined;
    if (source === historyFile) await putStateInPlace();
    else history = await replaceHistory(historyFile, source, stamp, putStateInPlace);
    return { history, state };
  } catch (error) {
    ready?.discard();
    throw error;
  }
}

async function replaceHistory(
  path: string,
  source: string,
  stamp: string,
  onReady: () => Promise<void>,
): Promise<RestoredHistory> {
  let aside = `${path}.replaced-${stamp}`;
  for (let number = 2; await exists(aside); number++) aside = `${path}.replaced-${stamp}-${number}`;
  await restoreHistory(path, source, aside, onReady);
  return { path, source, aside: (await exists(aside)) ? aside : undefined };
}

/**
 * Takes over a workspace of Readership 0.4: its `effects.log` must have no attempt that is missing from its database. The history comes
 * last, and then its files get names that nobody looks for. Throws a `StorageError`, with nothing changed, if it cannot.
 */
async function restoreFrom04(
  { dataDir, historyFile, witness }: Workspace,
  source: string,
  found: FoundState,
): Promise<RestoredStores> {
  if (await isHistory(historyFile))
    throw new StorageError(
      `${dataDir} already has a history of this version. Nothing was changed. To continue: readership run`,
    );
  const tables = await readStateOf04(source).catch((cause: unknown) => {
    throw storageFailure(`read ${source}`, cause);
  });
  const log = join(dirname(source), 'effects.log');
  if (await exists(log)) expectEveryAttempt(log, source, tables);
  const saved = await importState(tables, historyFile);
  if (found.is === 'sound' && (found.workspace !== saved.workspace || found.attempt > saved.attempt))
    throw new StorageError(
      `The state in ${dataDir} is not that of ${source}, or has more of what was sent. Nothing was changed. ` +
        'Move it away if it is not needed, then run the command again.',
    );
  const seen = witness === undefined ? undefined : seenBy05(witness);
  if (seen !== undefined && seen.workspace !== saved.workspace)
    throw new StorageError(
      `${witness} belongs to another workspace than ${source}. Nothing was changed. Put the right data directory there.`,
    );
  const ready = writeState(dataDir, saved, source);
  const state = await ready.putInPlace(OLD);
  // A witness that knows more stays: an older copy of the files of 0.4 was put back, and what was sent since is unknown.
  if (witness !== undefined && (seen?.attempt ?? 0) <= saved.attempt) {
    // The same command does all of it again if it was killed, when the witness may be the new one.
    if (!(await exists(`${witness}.${OLD}`))) await rename(witness, `${witness}.${OLD}`).catch(ignoreMissing);
    writeWitness(witness, saved);
  }
  const aside = `${historyFile}.${OLD}`;
  await writeHistoryOf04(historyFile, source, aside);
  for (const [name, end] of [
    ['warehouse.duckdb', ''],
    ['warehouse.duckdb', '.wal'],
    ['warehouse.duckdb', '.lock'],
    ['effects.log', ''],
  ] as const)
    await rename(join(dataDir, name + end), join(dataDir, `${name}.${OLD}${end}`)).catch(ignoreMissing);
  return { history: { path: historyFile, source, aside: (await exists(aside)) ? aside : undefined }, state };
}

/** What this version wrote into the witness; undefined for the file that 0.4 had there, and for none. */
function seenBy05(witness: string): LastAttempt | undefined {
  try {
    return readWitness(witness);
  } catch {
    return undefined;
  }
}

/** Whether a file is a history of this version. */
const isHistory = async (path: string): Promise<boolean> =>
  (await exists(path)) && (await readSource(path).catch(() => undefined))?.is === 'history';

/** Ends the names of the files of 0.4. */
const OLD = '0.4';

/** The file to restore from. Throws a `StorageError` if there is none. */
async function expectSource(historyFile: string, from: string | undefined): Promise<string> {
  const source = resolve(from ?? historyFile);
  if (!(await exists(source)))
    throw new StorageError(
      from === undefined
        ? `There is no history ${source} to restore from. Nothing was changed. Use a backup: readership restore --from FILE`
        : `There is no ${source} to restore from. ${OTHER_FILE}`,
    );
  if (!(await stat(source)).isFile())
    throw new StorageError(`${source} is not a file, so not a history. ${OTHER_FILE}`);
  return source;
}

/** The state that the history of a workspace carries; undefined if there is none, or if it cannot be read. */
export async function savedState({ historyFile }: Workspace): Promise<CarriedState | undefined> {
  if (!(await exists(historyFile))) return undefined;
  const source = await readSource(historyFile).catch(() => undefined);
  return source?.is === 'history' ? source.state : undefined;
}
