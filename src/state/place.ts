import { createHash } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';
import { StorageError } from '../errors.js';
import { moment } from '../format/days.js';

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
