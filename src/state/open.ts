import { randomUUID } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readSql } from '../columns.js';
import { StorageError } from '../errors.js';
import { behindLinks, ignoreMissing, makeDirectories } from '../files.js';
import { storageFailure } from '../storage.js';
import { canLockIn, type Database, failureOf, lockless, openDatabase, retriedRead } from './database.js';
import type { SendingPlace } from './workspace.js';
import { State } from './state.js';

const SCHEMA = readSql(import.meta.url, 'schema.sql');
const ADD_WORKSPACE =
  'INSERT INTO workspace (only, id, machine, host, path) VALUES (1, $id, $machine, $host, $path)';
const CONTENTS = readSql(import.meta.url, 'statements/contents.sql');

/** The version of `schema.sql`, stored as `user_version`. */
const VERSION = 1;
/** Marks a SQLite file as a state of Readership: “RDSH”. */
const APPLICATION_ID = 0x52_44_53_48;

export const stateFileIn = (dataDir: string): string => behindLinks(join(dataDir, 'state.db'));

/** The error for a state that is missing, although the history beside it shows that there was one. */
export const missingState = (dataDir: string): StorageError =>
  new StorageError(
    `The state ${stateFileIn(dataDir)} is missing, but the history beside it exists. Without it, what was sent could be sent again. ` +
      'Nothing was changed. To restore the state from the history: readership restore',
  );

/**
 * Opens the state of a data directory; undefined if there is none. Throws a `StorageError` if it cannot be opened, is
 * damaged, or was written by a newer version or another program.
 */
export async function openState(dataDir: string): Promise<State | undefined> {
  const path = stateFileIn(dataDir);
  const found = await stat(path)
    .catch(ignoreMissing)
    .catch((error: unknown) => {
      throw storageFailure(`open the state ${path}`, error);
    });
  if (found === undefined) return undefined;
  if (!found.isFile())
    throw new StorageError(
      `The state ${path} is not a file. Nothing was changed. Move away what is there, then restore the state from a backup: readership restore --from FILE`,
    );
  const database = openFile(path);
  try {
    const state = new State(path, database);
    if (hasOurSchema(state)) return state;
    // A process that was killed while it created the state leaves an empty file.
    database.close();
    return undefined;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Creates the state of a workspace that sends from `here`, and its directory. If another process has just created it,
 * opens that.
 */
export async function createState(dataDir: string, here: SendingPlace): Promise<State> {
  const path = stateFileIn(dataDir);
  try {
    makeDirectories(dirname(path), 0o700);
  } catch (error) {
    throw storageFailure(`create the directory ${dirname(path)}`, error);
  }
  if (!canLockIn(dirname(path))) throw lockless(dirname(path));
  const database = openFile(path);
  try {
    const state = new State(path, database);
    await state.transaction(() => {
      if (hasOurSchema(state)) return;
      chmodSync(path, 0o600);
      createTables(database);
      state.run(ADD_WORKSPACE, { id: randomUUID(), machine: here.machine, host: here.host, path: here.path });
    });
    return state;
  } catch (error) {
    database.close();
    throw failureOf('create the state', path, error);
  }
}

function createTables(database: Database): void {
  database.exec(SCHEMA);
  database.exec(`PRAGMA user_version = ${VERSION}; PRAGMA application_id = ${APPLICATION_ID}`);
  database.exec('INSERT INTO worker (only, token) VALUES (1, 0)');
}

function openFile(path: string): Database {
  try {
    return retriedRead(path, () => openDatabase(path));
  } catch (error) {
    throw failureOf('open the state', path, error);
  }
}

const contentsRow = z.object({ application_id: z.int(), user_version: z.int(), objects: z.int() });

/** Whether a database has our tables, or none. Throws a `StorageError` if it has those of another program or version. */
function hasOurSchema(state: State): boolean {
  const contents = state.get(CONTENTS, contentsRow);
  if (contents === undefined || contents.objects === 0) return false;
  if (contents.application_id !== APPLICATION_ID)
    throw new StorageError(
      `${state.path} is not a state of Readership: another program wrote it. Nothing was changed. Move it away, or set dataDir to another directory.`,
    );
  if (contents.user_version > VERSION)
    throw new StorageError(
      `A newer version of Readership wrote the state ${state.path}. Nothing was changed. Install that version of Readership.`,
    );
  return true;
}

/** A state without anything, in memory. */
export function emptyState(): State {
  const database = openDatabase(':memory:');
  createTables(database);
  return new State(':memory:', database);
}
