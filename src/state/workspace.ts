import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';
import { timestampColumn } from '../columns.js';
import { StorageError } from '../errors.js';
import { moment } from '../format/days.js';
import type { State } from './state.js';

/** Names the machine where its id and host name change, as in containers and CI. */
export const MACHINE_VARIABLE = 'READERSHIP_MACHINE';
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id'];

/** A machine, its host name, and the real path of a data directory on it. */
export const placeRow = z.object({ machine: z.string(), host: z.string(), path: z.string() });
/** Where a workspace sends from: a copy of it in another place sends nothing. */
export type SendingPlace = Readonly<z.infer<typeof placeRow>>;

/** The place of an existing data directory; `name` is what `READERSHIP_MACHINE` says. */
export async function placeOf(dataDir: string, name = ''): Promise<SendingPlace> {
  const named = name.trim();
  const host = named || hostname();
  return { machine: named || ((await machineId()) ?? host), host, path: await realpath(dataDir) };
}

/** A digest, because the id itself is confidential; undefined if there is none. */
async function machineId(): Promise<string | undefined> {
  for (const file of MACHINE_IDS) {
    const id = (await readFile(file, 'utf8').catch(() => '')).trim();
    if (/^[0-9a-f]{32}$/.test(id))
      return createHash('sha256').update(`readership ${id}`).digest('hex').slice(0, 16);
  }
  return undefined;
}

/** Cloned machines have the same id, so the host name counts too. */
export const isSamePlace = (one: SendingPlace, other: SendingPlace): boolean =>
  one.machine === other.machine && one.host === other.host && one.path === other.path;

export const placeWords = ({ host, path }: Pick<SendingPlace, 'host' | 'path'>): string => `${host}:${path}`;

/** This is a copy: the workspace sends from another place. */
export class OtherPlaceError extends StorageError {
  constructor(recorded: SendingPlace, here: SendingPlace, lastAt: Date | null) {
    super(
      `Nothing is sent from ${placeWords(here)}, because this workspace sends from ${placeWords(recorded)}, ` +
        `where it ${lastAt === null ? 'has sent nothing yet' : `last sent something on ${moment(lastAt)}`}. ` +
        'To send from here instead, stop it there and run: readership adopt' +
        (recorded.path === here.path ? ` (or set ${MACHINE_VARIABLE}, if this is the same machine)` : ''),
    );
  }
}

const workspaceRow = placeRow.extend({
  id: z.string(),
  /** The number of the last attempt to send something, and when it began. */
  attempt: z.int(),
  attempted_at: timestampColumn.nullable(),
  /** How often jobs, messages, emails or skips have changed. */
  changes: z.int(),
  locks_work_on: z.string().nullable(),
  /** The history that was last written, as `stampOf` has it; null before there was one. */
  history: z.string().nullable(),
  /** The version of the Parquet dataset that was last finished; null if none was. */
  dataset: z.string().nullable(),
});
/** The workspace that a state belongs to. */
type WorkspaceRow = Readonly<z.infer<typeof workspaceRow>>;

export function readWorkspaceRow(state: State): WorkspaceRow {
  const row = state.get('SELECT * FROM workspace', workspaceRow);
  if (row === undefined) throw new Error(`${state.path} has no workspace`);
  return row;
}

/** The error that says which place sends, if it is another one; undefined if it is this one. */
export function otherPlace(state: State, here: SendingPlace): OtherPlaceError | undefined {
  const recorded = readWorkspaceRow(state);
  return isSamePlace(recorded, here) ? undefined : new OtherPlaceError(recorded, here, recorded.attempted_at);
}

/** The version of the Parquet dataset that was last finished; null if none was. The dataset itself is not read. */
export const finishedDataset = (state: State): string | null => readWorkspaceRow(state).dataset;

/** Remembers the version that is finished; null lets the next publication look at the dataset. */
export const recordDataset = (state: State, version: string | null): Promise<number> =>
  state.change('UPDATE workspace SET dataset = $version', { version });

/** Remembers which history was last written, inside a transaction. */
export const setHistory = (state: State, stamp: string | undefined): number =>
  state.run('UPDATE workspace SET history = $stamp', { stamp: stamp ?? null });

/** Whether a history was ever written. */
export const hasHistory = (state: State): boolean =>
  state.get('SELECT history FROM workspace', workspaceRow.pick({ history: true }))?.history != null;
