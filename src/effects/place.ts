import { createHash, randomInt } from 'node:crypto';
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

/** This is a copy: the workspace sends from another place. */
export class ElsewhereError extends StorageError {}

/** Which place sends, and when it last did, if ever. Here and below, `option` is what names the shard in commands. */
export const sendsElsewhere = (recorded: Place, here: Place, option: string, lastAt?: Date): ElsewhereError =>
  new ElsewhereError(
    `Nothing is sent from ${placeWords(here)}, because this workspace sends from ${placeWords(recorded)}, ` +
      `where it ${lastAt === undefined ? 'has sent nothing yet' : `last sent something on ${moment(lastAt)}`}. ` +
      `To send from here instead, stop it there and run: readership adopt${option}` +
      (recorded.path === here.path ? ` (or set ${MACHINE_VARIABLE}, if this is the same machine)` : ''),
  );

/** Another copy of the workspace has published to the lake. */
export const publishedElsewhere = (location: string, at: Date, option: string): ElsewhereError =>
  new ElsewhereError(
    `Nothing is sent, or published to the lake ${location}, because another copy of this workspace published there on ${moment(at)}. ` +
      `If this copy was left behind: readership restore --from ${location}${option}. ` +
      `If this copy is to send from now on, and no other: readership adopt${option}`,
  );

/** A later state of this workspace has published to the lake. */
export const publishedLater = (location: string, at: Date, option: string): ElsewhereError =>
  new ElsewhereError(
    `Nothing is published to the lake ${location}, because a later state of this workspace published there on ${moment(at)}. ` +
      `To keep this state, with the newest effects*.log, and load its missing days again: readership adopt${option}. ` +
      `To take the days of the lake instead, without what people recorded, such as merges: readership restore --from ${location}${option}`,
  );

/** A lake of this workspace is missing. */
export const lakeGone = (location: string, option: string): StorageError =>
  new StorageError(
    `The lake ${location} is missing or empty, although this workspace has published to it. Nothing is sent, or published there. ` +
      `Mount or restore it. If it was removed on purpose, create it again: readership publish --rebuild${option}`,
  );

/** The workspace may have sent something that this state of it does not know; `from` is the last that it knows. */
export const sentUnknown = (from: Date | undefined, until: Date, option: string): ElsewhereError =>
  new ElsewhereError(
    `Nothing is sent, because this is an older state of the workspace: its database and its journal do not know what was sent ` +
      `${from === undefined ? 'until' : `between ${moment(from)} and`} ${moment(until)} or shortly after. ` +
      'Put the newest effects*.log back into the data directory: then nothing is sent twice. ' +
      `Or run readership adopt${option}, which may send again what was sent in that time`,
  );

/**
 * A claim to send, which a command makes before it first sends something: its number, and the one
 * in the lake before it. Numbers grow by a random step, so that two copies never claim the same one.
 */
export interface Claim {
  readonly number: number;
  readonly after: number;
}

const MAX_STEP = 2 ** 20;

/** The next claim. `last` is the number of the latest claim in the lake; without a lake, it is our own. */
export const nextClaim = ({ number }: Claim, last = number): Claim => ({
  number: Math.max(number, last) + randomInt(1, MAX_STEP),
  after: last,
});

/** Whether a state with this claim knows everything that was sent up to number `last`. */
export const knowsUpTo = ({ number, after }: Claim, last: number): boolean =>
  last === number || last <= after;

/** Whether anything may be sent: both say why not; undefined if it may. */
export interface Permission {
  /** Asked before anything is prepared. */
  readonly refusal: () => Promise<Error | undefined>;
  /** Claims to send, once before the first departure of a command. */
  readonly claim: () => Promise<Error | undefined>;
}
