import { ClockError } from '../api/errors.js';
import { EffectsJournal } from '../effects/journal.js';
import { leaveMarker, refuseToStartOver } from '../effects/marker.js';
import { agreeOnPlace, isSamePlace, placeOf, sendsElsewhere } from '../effects/place.js';
import type { MailTransport } from '../mail/transport.js';
import type { Effects, Observer, Parts } from '../steps/parts.js';
import { openWarehouse, refuseToForget } from '../warehouse/open.js';
import type { Warehouse } from '../warehouse/warehouse.js';
import { putRight } from './janitor.js';
import { type Callbacks, connect } from './platform.js';
import { keepPrivate, type Runtime, type Workspace } from './workspace.js';

/** How long a command waits for another process to release the live database. */
export const MAX_LOCK_WAIT_MS = 30_000;

/** Called with events while the live database is held. */
export type Listener = Callbacks & Observer;

/** The holder of the live database, such as `export`, and how long it waits for another one. */
interface Hold {
  readonly command: string;
  readonly maxWaitMs: number;
  /** Called once with the current holder. */
  readonly onHeld?: (who: string) => void;
}

const TOO_FAR_OFF =
  'Nothing is sent while the clocks of this machine and the platform are more than an hour apart. ' +
  'Set whichever is wrong: readership doctor';

/**
 * Opens a workspace that was read, runs `work` with its parts, and releases them, however it ends. Throws a
 * `LockedError` if another process holds the live database, and a `StorageError` if that must be restored first.
 */
export async function withParts<Result>(
  workspace: Workspace,
  { now, signal }: Runtime,
  { listener, ...hold }: Hold & { readonly listener: Listener },
  work: (parts: Parts) => Promise<Result>,
): Promise<Result> {
  const { liveFile, historyFile, dataDir, marker } = workspace;
  // A workspace that has loaded or sent something does not begin again because its files are missing.
  await refuseToForget(liveFile, historyFile);
  if (marker !== undefined) await refuseToStartOver(marker, dataDir, liveFile);
  return withStored(workspace, { now, signal }, hold, async ({ store, effects, putRight }) => {
    if (putRight !== undefined) listener.onNotice?.(putRight);
    const platform = await connect(workspace, { now, signal }, listener, store);
    try {
      const { journal, elsewhere } = effects;
      const whyNotSend = async () => {
        if (elsewhere !== undefined) return elsewhere;
        await platform.clock.ask();
        return platform.clock.isTooFarOff() ? new ClockError(TOO_FAR_OFF) : undefined;
      };
      const remember = async () => marker !== undefined && leaveMarker(marker, dataDir);
      journal.askFirst(whyNotSend, remember);
      // The marker may have been deleted.
      if (journal.lastSentAt !== undefined) await remember();
      const session = { now, signal, observer: listener };
      return await work({ workspace, platform, store, effects, session });
    } finally {
      await platform.close();
    }
  });
}

/** As `withParts`, without the platform; `putRight` says what was wrong, if anything was. */
export async function withStored<Result>(
  workspace: Workspace,
  { now, signal }: Pick<Runtime, 'now' | 'signal'>,
  { command, ...hold }: Hold,
  work: (stored: { store: Warehouse; effects: Effects; putRight: string | undefined }) => Promise<Result>,
): Promise<Result> {
  keepPrivate();
  const { liveFile, historyFile, dataDir, machine, credentials, sandbox } = workspace;
  const holder = { ...hold, command: `readership ${command}`, historyFile, now, signal };
  const store = await openWarehouse(liveFile, holder);
  let journal: EffectsJournal | undefined;
  try {
    // Only the holder of the live database may use the journal.
    journal = await EffectsJournal.open(dataDir);
    const here = await placeOf(dataDir, machine);
    const place = await agreeOnPlace(journal, store, here, now());
    const isNewSandbox = sandbox !== undefined && !journal.found;
    if (isNewSandbox) await sandbox.enterPast(journal);
    const { words, unknownDeliveries } = await putRight(store, journal, now());
    // The built-in sandbox has nobody to send to.
    const isHere = sandbox !== undefined || isSamePlace(place, here);
    const elsewhere = isHere ? undefined : sendsElsewhere(place, here, journal.lastSentAt);
    // One for the whole command, because it remembers that the server stopped answering.
    let opened: MailTransport | undefined;
    const transport = () => (opened ??= credentials.openTransport());
    const { channels } = credentials;
    const effects = { journal, here, elsewhere, unknownDeliveries, transport, channels };
    return await work({ store, effects, putRight: isNewSandbox ? undefined : words });
  } finally {
    await journal?.close();
    await store.close();
  }
}
