import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { moment } from '../format/days.js';

/** A machine, its host name for people, and the real path of a data directory on it. */
export const placeSchema = z.object({ machine: z.string(), host: z.string(), path: z.string() });
/** Where a workspace sends from: a copy elsewhere sends nothing. */
export type Place = Readonly<z.infer<typeof placeSchema>>;

/** Names the machine where its id and host name change, as in containers and CI. */
export const MACHINE_VARIABLE = 'READERSHIP_MACHINE';
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id'];

/** The place of an existing data directory; `name` is what `READERSHIP_MACHINE` says. */
export async function placeOf(dataDir: string, name = ''): Promise<Place> {
  const named = name.trim();
  const host = named === '' ? hostname() : named;
  const machine = named === '' ? ((await machineId()) ?? host) : named;
  return { machine, host, path: await realpath(dataDir) };
}

/** A digest, because the id itself is confidential; undefined if there is none. */
async function machineId(): Promise<string | undefined> {
  for (const file of MACHINE_IDS) {
    const id = (await readFile(file, 'utf8').catch(() => '')).trim();
    if (/^[0-9a-f]{32}$/.test(id)) return digest(id);
  }
  return undefined;
}

const digest = (text: string): string =>
  createHash('sha256').update(`readership ${text}`).digest('hex').slice(0, 16);

export const isSamePlace = (one: Place, other: Place): boolean =>
  one.machine === other.machine && one.path === other.path;

/** Identifies a place where its name must not be shown, such as in a lake. */
export const placeDigest = ({ machine, path }: Place): string => digest(`${machine}\n${path}`);

export const placeWords = ({ host, path }: Pick<Place, 'host' | 'path'>): string => `${host}:${path}`;

const ADOPT = 'stop it there and run: readership adopt';

/** This is a copy: the workspace sends from another place. */
export class ElsewhereError extends StorageError {}

/** Which place sends, and when it last did, if ever. */
export const sendsElsewhere = (recorded: Place, here: Place, lastAt: Date | undefined): ElsewhereError =>
  new ElsewhereError(
    `Nothing is sent from ${placeWords(here)}, because this workspace sends from ${placeWords(recorded)}, ` +
      `where it ${lastAt === undefined ? 'has sent nothing yet' : `last sent something on ${moment(lastAt)}`}. ` +
      `To send from here instead, ${ADOPT}` +
      (recorded.path === here.path ? ` (or set ${MACHINE_VARIABLE}, if this is the same machine)` : ''),
  );

/** The lake shows that another copy, or a later state of this one, has published. */
export const publishedElsewhere = (location: string, at: Date): ElsewhereError =>
  new ElsewhereError(
    `Nothing is sent, because this is not the newest state of the workspace: another copy, or a later state of this one, ` +
      `published to the lake ${location} on ${moment(at)}. ` +
      `If this state was restored or left behind: readership restore --from ${location}\n` +
      `If this copy is to send from now on, and no other: readership adopt`,
  );
