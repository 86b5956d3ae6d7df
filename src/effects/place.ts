import { createHash, randomUUID } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { moment } from '../format/days.js';
import type { Reader } from '../warehouse/query.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { type SendingPlace, placeSchema } from './entries.js';
import type { EffectsJournal } from './journal.js';

/** Names the machine where its id and host name change, as in containers and CI. */
export const MACHINE_VARIABLE = 'READERSHIP_MACHINE';
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id'];
const TAKE_ID = 'INSERT INTO workspace (id) VALUES ($id)';
const MOVE = 'UPDATE workspace SET machine = $machine, host = $host, path = $path';

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

export const isSamePlace = (one: SendingPlace | undefined, other: SendingPlace): boolean =>
  one?.machine === other.machine && one.path === other.path;

export const placeWords = ({ host, path }: Pick<SendingPlace, 'host' | 'path'>): string => `${host}:${path}`;

/** This is a copy: the workspace sends from another place. */
export class ElsewhereError extends StorageError {}

/** Which place sends, and when it last did, if ever. */
export const sendsElsewhere = (recorded: SendingPlace, here: SendingPlace, lastAt?: Date): ElsewhereError =>
  new ElsewhereError(
    `Nothing is sent from ${placeWords(here)}, because this workspace sends from ${placeWords(recorded)}, ` +
      `where it ${lastAt === undefined ? 'has sent nothing yet' : `last sent something on ${moment(lastAt)}`}. ` +
      'To send from here instead, stop it there and run: readership adopt' +
      (recorded.path === here.path ? ` (or set ${MACHINE_VARIABLE}, if this is the same machine)` : ''),
  );

/** The id of the workspace that a database belongs to; undefined if that was never recorded. */
export const readWorkspaceId = async (reader: Reader): Promise<string | undefined> =>
  (await reader.query('SELECT id FROM workspace', z.object({ id: z.string() })))[0]?.id;

/** Where the workspace sends from; undefined if that was never recorded. */
export const readPlace = async (reader: Reader): Promise<SendingPlace | undefined> =>
  placeSchema.safeParse((await reader.query('FROM workspace', z.unknown()))[0]).data;

/**
 * Gives the live database and the effects journal next to it the same id, and the same place to send from: what the
 * journal has, or else the database, or `here`. Throws a `StorageError` if they belong to different workspaces.
 */
export async function agreeOnPlace(journal: EffectsJournal, store: Warehouse, here: SendingPlace, now: Date) {
  const known = await readWorkspaceId(store);
  const id = known ?? journal.workspace ?? randomUUID();
  if (known === undefined) await store.transaction((own) => own.execute(TAKE_ID, { id }));
  await journal.assignTo(id);
  const stored = await readPlace(store);
  const place = journal.place ?? stored ?? here;
  const isSettled = isSamePlace(stored, place) && journal.place !== undefined;
  if (!isSettled) await sendFrom(place, journal, store, now);
  return place;
}

/** Makes a place the one that sends. */
export async function sendFrom(place: SendingPlace, journal: EffectsJournal, store: Warehouse, now: Date) {
  if (!isSamePlace(journal.place, place)) await journal.settleAt(place, now);
  await store.transaction((own) => own.execute(MOVE, place));
}
